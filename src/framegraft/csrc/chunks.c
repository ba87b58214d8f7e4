/* Chunks of Python's stack are kept for the next call.

   CPython 3.11 and later lay the frames of Python functions into chunks of 16 KiB, and ask the arena allocator for each. A call that
   finds no room in its chunk maps another one, which is unmapped when it returns: calls in a loop that happen to begin at a chunk's end
   pay for two system calls and for page faults each, and a function whose rests behind breaks lie on top of each other for several.
   Some chunks are kept here; everything else goes to the allocator that was there before. */
#include "core.h"
#include <stdatomic.h>

#ifndef FG_BLOCK_STACK
enum { CHUNK = 16 * 1024, MOST = 16 };

static PyObjectArenaAllocator before;
static void *kept[MOST];
static int count;
static atomic_flag busy = ATOMIC_FLAG_INIT; /* interpreters with a lock of their own share this; who finds it taken does without */

static void *chunk_alloc(void *ctx, size_t size)
{
    void *found = NULL;
    if (size == CHUNK && !atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) {
        if (count)
            found = kept[--count];
        atomic_flag_clear_explicit(&busy, memory_order_release);
    }
    return found ? found : before.alloc(before.ctx, size);
}

static void chunk_free(void *ctx, void *block, size_t size)
{
    bool taken = false;
    if (size == CHUNK && !atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) {
        if (count < MOST) {
            kept[count++] = block;
            taken = true;
        }
        atomic_flag_clear_explicit(&busy, memory_order_release);
    }
    if (!taken)
        before.free(before.ctx, block, size);
}

void fg_keep_chunks(void)
{
    static bool installed;
    if (installed)
        return;
    installed = true;
    PyObject_GetArenaAllocator(&before);
    PyObject_SetArenaAllocator(&(PyObjectArenaAllocator){NULL, chunk_alloc, chunk_free});
}
#else /* frames have memory of their own */
void fg_keep_chunks(void)
{
}
#endif
