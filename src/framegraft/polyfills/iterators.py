"""Bodies of itertools' iterators, which the interpreter traces as it does the program's own generators.

They look no name up, so that nothing the program does to builtins changes them. Arguments are checked, and turned into
iterators where CPython's itertoolsmodule.c does so at once, before they come here.
"""

# ruff: noqa: B007, UP028 - the bodies say what happens when


def chain(iterables):
    for iterable in iterables:
        for item in iterable:
            yield item


def islice(iterator, start, stop, step):
    taken, following = 0, start
    while True:
        while taken < following:
            for _ in iterator:
                break
            else:
                return
            taken += 1
        if stop is not None and taken >= stop:
            return
        for item in iterator:
            break
        else:
            return
        taken += 1
        following += step
        if stop is not None and following > stop:
            following = stop
        yield item


def accumulate(iterator, function, has_initial, total):
    if not has_initial:
        for total in iterator:
            break
        else:
            return
    yield total
    for item in iterator:
        total = total + item if function is None else function(total, item)
        yield total


def repeat(value):
    while True:
        yield value


def count(number, step):
    while True:
        yield number
        number = number + step


def cycle(iterator):
    saved = []
    for item in iterator:
        saved = [*saved, item]
        yield item
    while saved:
        for item in saved:
            yield item


def takewhile(function, iterator):
    for item in iterator:
        if function(item):
            yield item
        else:
            return


def dropwhile(function, iterator):
    for item in iterator:
        if not function(item):
            yield item
            break
    for item in iterator:
        yield item


def filterfalse(function, iterator):
    for item in iterator:
        if not (item if function is None else function(item)):
            yield item


def starmap(function, iterator):
    for arguments in iterator:
        yield function(*arguments)


def pairwise(iterator):
    for before in iterator:
        break
    else:
        return
    for item in iterator:
        yield (before, item)
        before = item


def given(items):
    for item in items:
        yield item


def compress(data, selectors):
    for item in data:
        for chosen in selectors:
            break
        else:
            return
        if chosen:
            yield item


def backwards(sequence, index, ended):
    while index > 0:
        index -= 1
        try:
            item = sequence[index]
        except ended:
            return
        yield item


def zip_longest(iterators, active, fill):
    while active:
        row, index = [], 0
        for iterator in iterators:
            item = fill
            if iterator is not None:
                for item in iterator:
                    break
                else:
                    active -= 1
                    if not active:
                        return
                    iterators[index] = None
                    item = fill
            row = [*row, item]
            index += 1
        yield (*row,)


def until(function, sentinel):
    while True:
        value = function()
        if sentinel is value or sentinel == value:
            return
        yield value


def tee(iterator, link):
    """``link``: an empty list that all of them begin with; the next item goes in there, with the list for the one after it."""
    while True:
        if not link:
            for item in iterator:
                break
            else:
                return
            link += [item, []]
        item, link = link
        yield item


def grouper(group):
    """Handled by lazy.py: gives the generator another class."""
    return group


def groupby(iterator, function):
    for value in iterator:
        break
    else:
        return
    key, waits, current = value if function is None else function(value), True, None

    def group(wanted, token):
        nonlocal value, key, waits
        while current is token:
            if not waits:
                for value in iterator:
                    break
                else:
                    return
                key, waits = value if function is None else function(value), True
            if wanted is not key and not wanted == key:
                return
            waits = False
            yield value

    while True:
        target, current = key, []
        yield (key, grouper(group(target, current)))
        current = None
        while target is key or target == key:
            for value in iterator:
                break
            else:
                return
            key, waits = value if function is None else function(value), True


def sequence(sequence, ends):
    """What PySeqIter_New makes: items by number, until one of the errors ``ends`` comes."""
    index = 0
    while True:
        try:
            item = sequence[index]
        except ends:
            return
        yield item
        index += 1
