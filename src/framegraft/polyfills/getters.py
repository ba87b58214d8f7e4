"""What the objects of operator.itemgetter, attrgetter and methodcaller do. They look no name up."""


def item(key, obj, /):
    return obj[key]


def items(keys, obj, /):
    return (*[obj[key] for key in keys],)


def attribute(getattr, path, obj, /):
    for name in path:
        obj = getattr(obj, name)
    return obj


def attributes(getattr, paths, obj, /):
    found = []
    for path in paths:
        value = obj
        for name in path:
            value = getattr(value, name)
        found.append(value)
    return (*found,)


def method(getattr, name, args, kwargs, obj, /):
    return getattr(obj, name)(*args, **kwargs)
