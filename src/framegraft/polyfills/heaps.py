"""Bodies of the functions that CPython's _heapqmodule.c and _bisectmodule.c have, which the interpreter traces.

Items are compared in the same order, with ``<`` alone. They look no name up, so that nothing the program does to builtins changes
them; ``length`` is ``len``.
"""


def sift_down(heap, start, pos):
    item = heap[pos]
    while pos > start:
        parent = (pos - 1) >> 1
        above = heap[parent]
        if not item < above:
            break
        heap[pos] = above
        pos = parent
    heap[pos] = item


def sift_up(length, sift_down, heap, pos):
    end, start, item = length(heap), pos, heap[pos]
    child = 2 * pos + 1
    while child < end:
        right = child + 1
        if right < end and not heap[child] < heap[right]:
            child = right
        heap[pos] = heap[child]
        pos = child
        child = 2 * pos + 1
    heap[pos] = item
    sift_down(heap, start, pos)


def heappush(length, sift_down, sift_up, heap, item):
    heap.append(item)
    sift_down(heap, 0, length(heap) - 1)


def heappop(length, sift_down, sift_up, heap):
    last = heap.pop()
    if not heap:
        return last
    first = heap[0]
    heap[0] = last
    sift_up(length, sift_down, heap, 0)
    return first


def heapreplace(length, sift_down, sift_up, heap, item):
    first = heap[0]
    heap[0] = item
    sift_up(length, sift_down, heap, 0)
    return first


def heappushpop(length, sift_down, sift_up, heap, item):
    if heap and heap[0] < item:
        item, heap[0] = heap[0], item
        sift_up(length, sift_down, heap, 0)
    return item


def heapify(length, sift_down, sift_up, heap):
    pos = length(heap) // 2
    while pos:
        pos -= 1
        sift_up(length, sift_down, heap, pos)


def bisect_right(a, x, lo, hi):
    while lo < hi:
        mid = (lo + hi) // 2
        if x < a[mid]:
            hi = mid
        else:
            lo = mid + 1
    return lo


def bisect_left(a, x, lo, hi):
    while lo < hi:
        mid = (lo + hi) // 2
        if a[mid] < x:
            lo = mid + 1
        else:
            hi = mid
    return lo
