"""What test_swapped_values.py does with values: expressions of ``v`` (and ``w``), and statements that leave ``r``."""

import re

EXPRESSIONS = """
v ; repr(v) ; str(v) ; ascii(v) ; bool(v) ; len(v) ; list(v) ; tuple(v) ; sorted(v) ; sum(v) ; v == 1 ; v == v ; v != [1] ; 1 in v ; 'a' in v
v[0] ; v['a'] ; v[-1] ; v[:1] ; v[1:] ; v[::2] ; v[None] ; v[True] ; v[1.0] ; v + v ; v * 2 ; 2 * v ; -v ; +v ; ~v ; v < 2 ; v > 1 ; v <= v ; v < v
type(v).__name__ ; type(v) is int ; type(v) in (int, str, dict) ; isinstance(v, (int, str)) ; isinstance(v, dict) ; isinstance(v, type) ; callable(v)
v.a ; v.b ; v.v ; getattr(v, 'a', 5) ; hasattr(v, 'a') ; hasattr(v, '__len__') ; hasattr(v, '__dict__') ; hasattr(v, '__call__') ; v() ; v(1) ; v(a=1) ; v(*[1])
hash(v) == hash(v) ; int(v) ; float(v) ; complex(v) ; bytes(v) ; abs(v) ; f'{v}' ; f'{v!r:>5}' ; f'{v:>3}' ; '%s' % (v,) ; '%r' % v ; '%d' % v ; '%(a)s' % v
v.__class__.__name__ ; v.__dict__ ; vars(v) ; v.__doc__ ; v.__name__ ; v.__code__.co_name ; v.__defaults__ ; v.__kwdefaults__ ; v.z ; {v: 1}[v] ; [*v] ; {**v}
dict(v) ; set(v) ; frozenset(v) ; max(v) ; min(v) ; any(v) ; all(v) ; next(iter(v)) ; next(v) ; next(v, 'end') ; list(reversed(v)) ; list(enumerate(v, 1))
list(zip(v, v)) ; v.value ; v.name ; list(v.keys()) ; list(v.values()) ; list(v.items()) ; v.get('a') ; v.get('q', 7) ; v.copy() ; v.upper() ; v.index(1) ; v.count(1)
v.args ; v.func ; v.start ; v.shape ; v.dtype ; v.requires_grad ; v.is_contiguous() ; v.real ; v.imag ; v.numerator ; v is None ; v is True ; v in (1, None, 'a')
[v] == [1] ; (v,) == (1,) ; {v} == {1} ; operator.index(v) ; math.floor(v) ; math.trunc(v) ; math.isnan(v) ; math.copysign(1, v) ; id(v) == id(v) ; v is v
isinstance(v, torch.Tensor) ; isinstance(v, collections.abc.Iterable) ; isinstance(v, collections.abc.Hashable) ; isinstance(v, collections.abc.Mapping)
isinstance(v, collections.abc.Sequence) ; isinstance(v, collections.abc.Callable) ; issubclass(v, K1) ; issubclass(type(v), int) ; isinstance(v, int | None)
v | v ; v & v ; v ^ v ; v - v ; v % 2 ; v // 2 ; v ** 2 ; v / 2 ; v << 1 ; divmod(v, 2) ; round(v) ; round(v, 1) ; chr(v) ; ord(v) ; bin(v) ; hex(v) ; v @ v
v.maxlen ; v.default_factory ; v.__self__ is v.__self__ ; v.__func__ is v.__func__ ; v.keywords ; v.year ; v.days ; v.pattern ; v.match('a') is None ; v.group()
v.__module__ ; v.__qualname__ ; v.__mro__ ; v.__bases__ ; v.__members__ ; v.__annotations__ ; v.__slots__ ; v.__wrapped__ ; v.__match_args__ ; v.__origin__ ; v.__args__
v.weight ; v.training ; len(list(v.parameters())) ; v.bias is None ; [type(i).__name__ for i in v] ; [i for i in v if i] ; {k: 1 for k in v} ; {type(k) for k in v}
dataclasses.asdict(v) ; dataclasses.astuple(v) ; dataclasses.fields(v)[0].name ; dataclasses.is_dataclass(v) ; dataclasses.replace(v, a=9) ; v._replace(a=5) ; v._fields
v._asdict() ; v.items is None ; iter(v) is v ; len(str(v)) ; v.tolist() ; v.item() ; v.__eq__(1) ; v.__ne__(1) ; v.__lt__(1) ; v.__hash__ is None ; v.__len__() ; v.__bool__()
v.__contains__(1) ; v.__getitem__(0) ; v.__iter__() is v ; v.__add__(v) ; v.__radd__(v) ; v.__mul__(2) ; v.__or__(v) ; v.__repr__() ; v.__str__() ; v.__format__('')
v.__getattribute__('a') ; v.__int__() ; v.__float__() ; v.__index__() ; v.__abs__() ; v.__neg__() ; v.__invert__() ; v.__call__() ; v.__sizeof__() > 0 ; v.__dir__() is None
v.__reduce__() is None ; v.__class__ is type(v) ; v.__init__ is None ; type(v).__eq__(v, v) ; type(v).__len__(v) ; type(v).__hash__ is None ; object.__repr__(v) is None
not v ; v or 3 ; v and 3 ; 3 if v else 4 ; x + v ; v + x ; x * v ; x - v ; x / v ; x ** v ; x[v] ; x.to(v) ; torch.add(x, v) ; torch.zeros(2).reshape(v) ; torch.zeros(v)
torch.full((2,), v) ; x.sum(v) ; x.sum(dim=v) ; x.clone().fill_(v) ; x.new_zeros(v) ; torch.tensor(v) ; torch.as_tensor(v) ; x == v ; x < v ; x.dtype == v ; x.device == v
torch.is_tensor(v) ; torch.stack(v) ; torch.cat(v) ; torch.clamp(x, v) ; torch.clamp(x, max=v) ; torch.where(x > 0, v, x) ; torch.zeros(2, dtype=v) ; torch.zeros(2, device=v)
torch.arange(v) ; torch.nn.functional.relu(v) ; x.expand(v) ; x.view(v) ; x.unsqueeze(v) ; x.repeat(v) ; x.type(v) ; torch.ones_like(v) ; v.detach() ; v.numel() ; v.dim()
v.sum() ; v.view(-1) ; v.stride() ; v.storage_offset() ; v.grad is None ; v.is_leaf ; v.T ; v.mean() ; v.unsqueeze(0) ; len(v.shape) ; v.size(0) ; v.ndim ; v.data ; v.clone()
copy.copy(v) ; copy.deepcopy(v) ; functools.reduce(operator.add, v) ; functools.reduce(operator.add, v, 0) ; functools.partial(v)() ; functools.partial(fn1, v)() ; '-'.join(v)
'{}'.format(v) ; '{0!r}'.format(v) ; '{0:>4}'.format(v) ; '{a}'.format(**v) ; v.strip() ; v.split('a') ; v.encode() ; v.decode() ; v.hex() ; v.is_integer() ; v.conjugate()
v.bit_length() ; v.as_integer_ratio() ; v.replace('a', 'z') ; v.startswith('a') ; v.endswith(('a', '1')) ; v.find('b') ; v.partition('a') ; v.isdigit() ; v.isalpha() ; v.title()
v.zfill(3) ; v.center(5, '*') ; v.splitlines() ; v.casefold() ; v.translate({97: 'q'}) ; v.format(1) ; v.join(['p', 'q']) ; v.ljust(4) ; v.lower() ; v.rsplit() ; v.swapcase()
v.removeprefix('a') ; v.union({5}) ; v.intersection({1}) ; v.issubset({1, 2}) ; v.isdisjoint([1]) ; v.difference([1]) ; v.most_common(1) ; v.elements() is v ; v.total() ; v.maps
v.new_child() is v ; v.parents ; v.parts ; v.suffix ; v.numerator + v.denominator ; v.isoformat() ; v.total_seconds() ; v.parameters['a'].default ; v.substitute(a=1) ; v.cache_info()
v.with_traceback(None) is v ; v.__cause__ ; v.__context__ ; v.__traceback__ ; v.__notes__ ; v.errno ; v.filename ; v.with_name('q') ; v.typecode ; v.tobytes() ; v.itemsize ; v.format
(lambda: v)() ; (lambda a=v: a)() ; (lambda *a: a)(*v) ; [*map(str, v)] ; list(map(lambda i: i, v)) ; list(filter(None, v)) ; list(itertools.chain(v, v)) ; list(itertools.chain.from_iterable(v))
list(itertools.islice(v, 2)) ; list(itertools.accumulate(v)) ; list(itertools.pairwise(v)) ; list(itertools.product(v, v)) ; list(itertools.zip_longest(v, [1, 2])) ; list(itertools.combinations(v, 2))
list(itertools.groupby(v)) is None ; list(itertools.takewhile(bool, v)) ; list(itertools.compress(v, v)) ; list(itertools.starmap(max, v)) ; list(itertools.repeat(v, 2)) ; list(itertools.permutations(v))
collections.Counter(v) ; collections.OrderedDict(v) ; collections.deque(v) ; collections.deque(v, 1) ; collections.ChainMap(v)['a'] ; collections.defaultdict(v)['q'] ; collections.deque(maxlen=v)
dict.fromkeys(v, 1) ; dict(a=v) ; dict([v]) ; dict(zip(v, v)) ; set([v]) ; range(v) ; slice(v) ; list(range(v)) ; [0, 1, 2][v] ; 'abc'[v] ; (1, 2)[v] ; {'a': 1, 1: 2, None: 3}.get(v) ; [v] * 2
[[1]] + [v] ; [1] + v ; (1,) + v ; 'a' + v ; b'a' + v ; v + 1 ; v + 'a' ; v + [1] ; v + (1,) ; v == None ; v == 'a' ; v == (1,) ; v == {'a': 1} ; v == {1} ; v == 1.0 ; v == b'a'
math.prod(v) ; math.sqrt(v) ; math.gcd(v, 4) ; math.fsum(v) ; math.dist(v, v) ; math.hypot(*v) ; min(v, v) ; max(v, default=0) ; max(v, key=lambda i: i) ; sorted(v, key=repr) ; sorted(v, reverse=True)
operator.itemgetter(0)(v) ; operator.attrgetter('a')(v) ; operator.methodcaller('copy')(v) ; operator.length_hint(v) ; operator.concat(v, v) ; operator.countOf(v, 1) ; operator.truth(v) ; operator.not_(v)
operator.add(v, v) ; operator.getitem(v, 0) ; operator.contains(v, 1) ; operator.eq(v, 1) ; operator.is_(v, v) ; operator.matmul(v, v) ; operator.neg(v) ; operator.call(v)
inspect.isfunction(v) ; inspect.isclass(v) ; inspect.ismodule(v) ; inspect.ismethod(v) ; inspect.isgenerator(v) ; inspect.getdoc(v) ; inspect.signature(v).parameters ; inspect.unwrap(v) is v
typing.cast(int, v) ; typing.get_origin(v) ; typing.get_args(v) ; types.SimpleNamespace(a=v).a ; types.MappingProxyType(v)['a'] ; types.MethodType(fn1, v)() ; weakref.ref(v)() is v ; enum.auto is v
json.dumps(v) ; re.sub('a', 'b', v) ; re.match('a', v) is None ; string.capwords(v) ; array.array('i', v) ; fractions.Fraction(v) ; decimal.Decimal(v) ; pathlib.PurePath(v) ; numpy.array(v) ; numpy.asarray(v)
torch.device(v) ; torch.Size(v) ; torch.dtype == v ; torch.finfo(v).max ; torch.nn.Parameter(v) ; torch.from_numpy(v) ; E(v) ; IE(v) ; FL(v) ; E[v] ; NT(*v) ; NT(v, v) ; DC(v) ; DC(**v) ; MyInt(v) ; MyStr(v) ; MyList(v)
MyDict(v) ; MyTuple(v) ; type('N', (v,), {}).__mro__ ; type('N', (), v).__name__ ; super(K2, v).z ; globals()['K1'] is v ; eval('v') is v ; locals()['v'] is v ; issubclass(v, object) ; isinstance(1, v) ; v.mro()
[v, v][0] is v ; {'k': v}['k'] is v ; (v, 1)[0] is v ; [i is v for i in [v, None]] ; (v).__class__ ; v.__sizeof__() == v.__sizeof__() ; type(v)(v) ; type(v)() ; v.fromkeys('a') ; type(v) == type(v)
list(v.parameters()) ; list(v.children()) ; list(v.named_modules()) == [] ; v.state_dict() ; v(torch.ones(1, 1)) ; v.in_features ; v.extra_repr() ; v[0:1] ; len(v) == 1 ; v.append is None ; v._modules ; v.zero_grad()
"""

STATEMENTS = [
    "match v:\n    case 1: r = 'one'\n    case [a]: r = ('l1', a)\n    case {'a': q}: r = ('d', q)\n    case O(a=q): r = ('o', q)\n    case str(): r = 's'\n    case None: r = 'n'\n    case _: r = 'other'",
    "match v:\n    case int(n): r = ('int', n)\n    case [a, *rest]: r = (a, rest)\n    case {'a': 1, **rest}: r = rest\n    case NT(a, b): r = (a, b)\n    case DC(1, b): r = b\n    case E.A | IE.A: r = 'A'\n    case -0.0: r = 'zero'\n    case _: r = 0",
    "match v:\n    case True: r = 'true'\n    case 0.0: r = '0.0'\n    case 'a' | b'a': r = 'a'\n    case (1, 2): r = 'pair'\n    case {}: r = 'mapping'\n    case K2(1): r = 'k'\n    case _ if v == 2: r = 'two'\n    case x1: r = ('x', x1)",
    "a, = v\nr = a", "a, *b = v\nr = (a, b)", "*a, b = v\nr = (a, b)", "a, b = v\nr = (b, a)", "(a, b), c = v, 1\nr = a", "[a, *_] = v\nr = a",
    "def kw(**k): return list(k.items())\nr = kw(**v)", "def star(*a): return a\nr = star(*v)", "def both(a, *b, c=v, **k): return (a, b, c, k)\nr = both(1)",
    "def one(a): return a\nr = one(*v)", "def named(a, b=1): return (a, b)\nr = named(**v)",
    "with v: r = 1", "with v as q: r = q", "with v:\n    raise ValueError('in')\nr = 'suppressed'", "r = 0\ntry:\n    with v as q: raise KeyError('k')\nexcept KeyError as e: r = e.args",
    "try: raise v\nexcept ValueError as e: r = ('value', e.args)\nexcept Exception as e: r = type(e).__name__", "try: raise ValueError(1) from v\nexcept ValueError as e: r = e.__cause__",
    "try:\n    {}['k']\nexcept v: r = 'caught'\nexcept KeyError: r = 'not'", "try:\n    r = v['a']\nexcept (KeyError, TypeError, IndexError) as e: r = (type(e).__name__, e.args)",
    "try:\n    r = v.a\nexcept AttributeError as e: r = (e.name, str(e))", "try: r = v + 1\nexcept TypeError as e: r = str(e)", "try: r = v()\nexcept TypeError as e: r = str(e)", "try: r = [*v]\nexcept TypeError as e: r = str(e)",
    "try: r = -v\nexcept TypeError as e: r = str(e)", "try: r = v < 1\nexcept TypeError as e: r = str(e)", "try: r = v[5]\nexcept Exception as e: r = (type(e).__name__, str(e))", "try: r = int(v)\nexcept Exception as e: r = (type(e).__name__, str(e))",
    "try: r = len(v)\nexcept TypeError as e: r = str(e)", "try: r = {v: 1}\nexcept TypeError as e: r = str(e)", "try: v.zz\nexcept AttributeError as e: r = (e.obj is v, e.name)",
    "r = 0\nfor i in v: r += 1", "r = []\nfor i, j in enumerate(v): r.append((i, j))", "r = []\nfor k, q in v.items(): r.append((k, q))", "r = []\nwhile v:\n    r.append(v.pop())",
    "r = None\nfor i in v:\n    if i: break\nelse: r = 'none'", "r = [i for i in v]\nr.append([j for j in v])", "r = list(v)\nr += list(v)",
    "v.append(5)\nr = len(v)", "v.extend([1, 2])\nr = 0", "v.insert(0, 9)\nr = v[0]", "r = v.pop()", "r = v.pop('a')", "r = v.pop('q', 1)", "r = v.popitem()", "v.clear()\nr = len(v)", "v.remove(1)\nr = 0", "v.reverse()\nr = 0", "v.sort()\nr = 0",
    "v.add(5)\nr = len(v)", "v.discard(1)\nr = 0", "v.update({7})\nr = 0", "v.update({'q': 7})\nr = list(v)", "v.update(a=8)\nr = v['a']", "r = v.setdefault('a', 3)", "v.setdefault('q', []).append(1)\nr = 0", "v['a'] = 5\nr = 0", "v[0] = 5\nr = 0",
    "v[:] = [7]\nr = 0", "v[:0] = [7]\nr = 0", "del v[0]\nr = 0", "del v['a']\nr = 0", "del v[:1]\nr = 0", "v[0] += 1\nr = 0", "v['a'] += 1\nr = 0", "v += v\nr = v", "v += [1]\nr = v", "v *= 2\nr = v", "v |= v\nr = v", "v |= {5: 6}\nr = v", "v -= v\nr = v",
    "v += 1\nr = v", "v += (1,)\nr = v", "v &= v\nr = v", "v.a = 5\nr = v.a", "v.q = 5\nr = v.q", "v.a += 1\nr = 0", "del v.a\nr = hasattr(v, 'a')", "v.b = 6\nr = v.b", "setattr(v, 'a', 5)\nr = getattr(v, 'a')", "v.__dict__['a'] = 3\nr = v.a",
    "v.__dict__.update(a=4)\nr = v.a", "v.__dict__ = {'a': 9}\nr = v.a", "v.__class__ = K1\nr = v.z", "vars(v)['b'] = 1\nr = sorted(vars(v))", "v.__doc__ = 'd'\nr = v.__doc__", "v.__name__ = 'n'\nr = v.__name__", "v.__defaults__ = (7,)\nr = v()",
    "v.appendleft(3)\nr = v[0]", "v.rotate(1)\nr = v[0]", "v.popleft()\nr = 0", "v.move_to_end('a')\nr = list(v)", "v.subtract('a')\nr = 0", "v['new']\nr = len(v)", "r = v['new']\nv['new2'] = r", "v.default_factory = list\nr = v['n']", "v.args = (3,)\nr = str(v)", "v.add_note('n')\nr = v.__notes__",
    "next(v)\nr = list(v)", "for i in v: break\nr = list(v)", "r = [next(v, None), next(v, None), next(v, None)]", "r = v.send(None)\nr = (r, list(v))", "v.close()\nr = list(v)", "r = list(zip(v, v))", "def g():\n    yield 1\n    q = yield from v\n    yield q\nr = list(g())", "r = 1 in v\nr = (r, list(v))",
    "v.add_(1)\nr = v.sum()", "v.mul_(2)\nr = v", "v[0] = 3\nr = v + 1", "v.t_()\nr = v.stride()", "v.requires_grad_(True)\nr = (v * 2).requires_grad", "v.data = torch.zeros(3)\nr = v", "v.grad = torch.ones_like(v)\nr = v.grad", "(v * 2).sum().backward()\nr = v.grad", "r = v.view(-1)\nr.add_(1)", "torch.add(x, 1, out=v)\nr = v",
    "x.add_(v)\nr = x.sum()", "x.copy_(v)\nr = x", "x[0] = v\nr = x", "x[v] = 0\nr = x", "v.train(False)\nr = v.training", "v.register_buffer('q', torch.ones(1))\nr = v.q", "v.weight.data.fill_(1)\nr = v.weight", "v.bias = None\nr = v.bias", "v.new = torch.nn.Parameter(torch.ones(1))\nr = len(list(v.parameters()))",
    "q = v\nq2 = [q, v]\nr = q2[0] is q2[1]", "def outer():\n    n = v\n    def inner():\n        nonlocal n\n        n = [n]\n        return n\n    return inner(), n\nr = outer()", "class C:\n    a = v\n    def get(self): return self.a\nr = C().get()", "class C(v): pass\nr = C.__mro__[1] is v", "class C:\n    def __init__(self, a=v): self.a = a\nr = C().a",
    "r = (yy := v) is v", "assert v, 'told'\nr = 1", "assert not v, v\nr = 1", "del v\nr = 1", "r = lambda: v", "def late(): return v\nr = late", "r = [lambda i=i: i for i in v]", "r = iter(v)", "r = (i for i in v)", "r = functools.partial(max, v)", "r = {'v': v, 'again': [v]}", "r = O(a=v)", "global GLOBAL_V\nGLOBAL_V = v\nr = GLOBAL_V",
    "if v == 1: r = 'eq'\nelif v: r = 'true'\nelse: r = 'false'", "r = 1 if isinstance(v, (list, tuple)) else 2 if isinstance(v, str) else 3", "r = v is not None and len(v) > 1", "r = 0 < v < 2", "r = f'{v!s:>{4}}'", "r = ''.join(str(i) for i in v)", "r = sum(1 for _ in v)", "r = {**v, 'z': 1}", "r = [*v, *v]", "r = {*v}", "r = (*v, 0)", "r = dict(v, z=1)",
]

PAIRS = """
v + w ; v - w ; v * w ; v / w ; v // w ; v % w ; v ** w ; v @ w ; v & w ; v | w ; v ^ w ; v << w ; v == w ; v != w ; v < w ; v <= w ; v is w ; v is not w ; v in w ; v not in w ; divmod(v, w) ; (v, w) ; [v, w].index(w) ; {v: 1, w: 2}
max(v, w) ; min(v, w) ; [v, w].count(v) ; v and w ; v or w ; isinstance(v, w) ; issubclass(v, w) ; getattr(v, w) ; v[w] ; v.get(w) ; v(w) ; v.join(w) ; list(zip(v, w)) ; [*v, *w] ; {**v, **w} ; type(v) is type(w) ; (v, w) == (w, v) ; {v, w}
[v] == [w] ; [v] < [w] ; sorted([v, w]) ; v.index(w) ; v.count(w) ; math.copysign(v, w) ; round(v, w) ; pow(v, w) ; range(v, w) ; slice(v, w) ; 'abcd'[v:w] ; f'{v:{w}}' ; v % (w,) ; v.__eq__(w) ; v.__add__(w) ; functools.partial(v, w)() ; list(map(v, w)) ; list(filter(v, w))
functools.reduce(v, w) ; dict.fromkeys(v, w) ; set(v) | set(w) ; v.update(w) ; v.extend(w) ; v.append(w) ; v.__setitem__(0, w) ; setattr(v, 'a', w) ; torch.add(v, w) ; v.add_(w) ; torch.cat([v, w]) ; torch.stack([v, w]) ; v.to(w) ; x.sum(v, w) ; torch.full(v, w) ; torch.where(x > 0, v, w)
torch.clamp(x, v, w) ; v.copy_(w) ; v.expand_as(w) ; itertools.chain(v, w) is v ; list(itertools.product(v, w)) ; collections.ChainMap(v, w)['a'] ; copy.copy(v) == w ; operator.itemgetter(v)(w) ; hash(v) == hash(w) ; isinstance(v, type(w)) ; str(v) == str(w) ; any([v, w]) ; next(iter(v), w) ; next(v, w)
"""


def expressions(text: str) -> list[str]:
    """The expressions of a text, told apart by semicolons between spaces and by lines."""
    return [part for part in re.split(" ; |\n", text) if part]
