"""Uses of the library (and of the language's rarer corners) in the wide grammar, one a paragraph.

``$I $F $B $S $T`` and ``$LI $LT $DI $DT $SI`` are random expressions (int, float, bool, str, tensor; list, dict and set of them),
``$x`` with a small letter a fresh name, the same one within a snippet; ``$x:T`` also makes it a variable of that type for what
comes later. ``$(a|b)`` is one of the alternatives, ``$BODY`` a few random statements.
"""

SNIPPETS = '''\
$p = CPoint($I, $T)
$a:I = $p.$(x|size|shifted(2).x)
$p.tags += $LI
note($p.tags, $p == CPoint($a, None), len($p.tags))

note(dataclasses.asdict(CPoint($I, $LI)), dataclasses.astuple(CPoint($I)))

$a:I = G_point.x + G_point.size
G_point.$(x += 1|tags.append($I)|y = $T)

note(CFrozen($I) < CFrozen($I, $S), CFrozen(1) == CFrozen(1), hash(CFrozen(2)) == hash(CFrozen(2)), repr(CFrozen(3)))

$p = CPair($I, $T)
$a:I, $b:T = $p
note($p._fields, $p.swapped().right, $p._replace(left=$I).left)

$p = CTriple($I, b=$I)
note($p, $p.a + $p.c, $p._asdict(), $p[1:], max($p))

$c = CColor($(1|2|$I % 2 + 1))
note($c.name, $c.value, $c is CColor.AZURE, $c.next, list(CColor), CColor["RED"] == $c)

$c = CBits($I & 7) | CBits.A
note($c, CBits.B in $c, $c & ~CBits.A, int($c), bool($c))

$m = CMade($I)
$a:I = $m($I)
note($m.number, CMade.virtual, len(CMade), 2 in CMade, [*CMade], CMeta.made)

$a:I = G_both.who($I)
note(G_both.chain(), G_both.field, type(G_both).__mro__[1].__name__, CRegistered.known, CLeft["k"])

G_both.field = $I
note(G_both.field, vars(G_both))
$(del G_both.field|G_both.field += 1|note(hasattr(G_both, 'nope')))

$w = CWatched()
$w.value $(+=|-=|=) $I
note($w.value, CWatched.log[-2:], hasattr($w, "other"))
$(del $w.value|pass|note(vars($w)))

$k = CNumber($I)
note([10, 20, 30][$k], int($k), float($k), bool($k), $k ** 2, divmod($k, 2), round($k), ~$k, 5 - $k, f"{$k:>3}", f"{$k!r}")
$k //= 3
note($k.v, sorted([$k, CNumber(1)]), $k == CNumber(2), {$k: 1}.get(CNumber($I)), list(reversed($k)), range(5)[$k], complex($k))

$l = CList($LI)
$l.append($I)
note($l, $l[99], $l.extra, [*$l], $l + [1], type($l[:1]).__name__, $l == list($l), sorted($l), isinstance($l, list))

$d = CDict($DI)
$d["k"] = $I
note($d["nope"], $d["k"], $d.get("zz"), dict($d), {**$d}, "k" in $d, len($d), list($d.items()))

G_clist.append($I)
note(G_clist[0], G_cdict["a"], G_cdict["other"], sum(G_clist))

$i = CInt($I)
note($i + 1, 1 + $i, $i * 2, type($i - 1).__name__, $i == int($i), f"{$i:03d}", hash($i) == hash(int($i)))
$a:I = int($i)

$s = CStr($S)
note($s.shout(), $s + "x", type($s.upper()).__name__, $s == str($s), len($s), $s[::-1], {$s: 1}.get(str($s)))

try:
    raise CError($I, $S)
except ValueError as error:
    note(error.code, error.args, isinstance(error, CError))
    $BODY

try:
    try:
        $BODY
        raise CError($I)
    except CError as error:
        error.add_note("seen")
        raise KeyError(error.code) $(from error|from None|)
except KeyError as error:
    note_error(error)
    note(getattr(error.__context__, "__notes__", None))

try:
    raise ExceptionGroup("g", [CError($I), KeyError("k"), ExceptionGroup("in", [TypeError("t")])])
except* ($(KeyError|ValueError|CError)) as group:
    note(len(group.exceptions))
    $BODY
except* TypeError as group:
    note(type(group).__name__, group.message)
except* Exception as group:
    note("rest")

def $f():
    try:
        $BODY
        return $I
    finally:
        $(note("finally")|return 5|pass)
$a:I = $f()

def $f(k):
    for $i in range(3):
        try:
            if $i == k: $(continue|break|return $i)
            note($i)
        finally:
            note("f", $i)
            $BODY
    else:
        note("else")
    return -1
$a:I = $f($I)

for $i in CCountdown($I % 4):
    note($i)
    $BODY

$c = CCountdown(3)
note(next($c), list(zip($c, "ab")), next($c, "end"))

async def $f(n):
    $a = await CAwait(n)
    async with CAsync(n % 3) as $b:
        $BODY
        $(note($b)|raise KeyError(n)|pass)
    return $a
note(drive($f($I), 3, 4))

async def $f(n):
    total = 0
    async for $i in CAsync(n % 4):
        total += $i
    else:
        total += 100
    return [total, [$j async for $j in CAsync(2)], [await CAwait($j) for $j in range(2)]]
note(drive($f($I)))

async def $g(n):
    for $i in range(n % 3):
        yield $i
        await CAwait($i)
async def $f(n):
    return [$j async for $j in $g(n) if $j != 1]
note(drive($f($I)))

async def $f():
    try:
        await CAwait(1)
        raise $(KeyError|CError)($I)
    except KeyError as error:
        note_error(error)
    finally:
        await CAwait(2)
try:
    note(drive($f()))
except CError as error:
    note_error(error)

with CGuard($("swallow"|"")) as $g, CGuard():
    $BODY

try:
    with CGuard($("enter"|"exit"|"swallow"|"")) as $g:
        $BODY
        $(raise KeyError($I)|pass|pass)
except (CError, KeyError) as error:
    note_error(error)

@CGuard()
def $f(q): return q + $I
$a:I = $f($I)

with contextlib.ExitStack() as $s:
    $s.enter_context(CGuard($("swallow"|"")))
    $s.callback(note, "callback", $I)
    $s.push(lambda *what: note("pushed", what[0] is None))
    $BODY
    $(raise KeyError(3)|$s.pop_all().close()|pass)

$a:T = wrapped($T, $(2|scale=$I))

@logged
def $f(q, *r, k=$I, **o): return q + k + len(r) + len(o)
$a:I = $f($I, $(2, 3|k=4|*$LI|**$DI|z=1))
note($f.__name__, $f.calls, $f.__wrapped__.__kwdefaults__)

$c = counted($I)
$a:I = $c() + $c(3)
note($c.__closure__[0].cell_contents if isinstance($c.__closure__[0].cell_contents, int) else None, G_counter($I))

$a:I = cached($I % 6)
note(cached.cache_info().currsize > 0)

note(shown($I), shown($LI), shown($S), shown(None))

note(strict($I, $I), strict($I, b=$I, c=$I))

try:
    note(strict($(a=1, b=2|1|1, 2, 3|1, 2, d=4)))
except TypeError as error:
    note(str(error))

$a:I = fib($I % 7)

$a:I = walk([$I, [$I, [$I]], ($I,)])

$g = endless($I)
note(next($g), $g.send(3), next($g))
$g.close()

$g = delegating($I % 4)
for $i in $g:
    note($i)
    $(if $i == 1: break|pass)

$g = endless($T)
$a:T = next($g) + $g.send(2.0)
$(G_list.append($g)|del $g|return $g, 1)

$g = (q * $I for q in $LI)
$(return $g, 2|note(sum($g))|G_list.append($g); return 3)

$q = collections.deque($LI, maxlen=$(None|3))
$q.$(append($I)|appendleft($I)|extend($LI)|rotate(1)|reverse())
note($q, len($q), $q == collections.deque($LI), list($q), $q.maxlen)

G_queue.$(append($I)|appendleft(5)|rotate(-1))
$a:I = G_queue[0] + sum(G_queue)

$d = collections.defaultdict($(list|int|lambda: 5))
for $k in $S:
    $(note($d[$k])|$d[$k] = $d[$k] * 2|$d.setdefault($k, 1))
note(dict($d), len($d), $d.default_factory is int)

$d = collections.OrderedDict($DI)
$d["n"] = $I
$d.move_to_end("n", last=$B)
note(list($d), $d.popitem(last=$B), $d == dict($d))

$k = collections.Counter($($LI|$S))
note($k.most_common(1), sum($k.values()), $k["nope"], +$k, $k - collections.Counter([1]))

$m = collections.ChainMap($DI, {"deep": $I})
note($m["deep"], list($m), $m.maps[0], "nope" in $m)

note([*itertools.$(pairwise($LI)|product($LI[:2], "ab")|permutations($LI[:2])|combinations($LI[:3], 2)|takewhile(lambda q: q > 0, $LI)|dropwhile(lambda q: q > 0, $LI)|starmap(pow, [(2, 3)])|zip_longest($LI, "ab")|compress($LI, [1, 0, 1])|islice(itertools.count($I), 3)|islice(itertools.cycle([1, 2]), 5)|filterfalse(lambda q: q > 1, $LI)|repeat($I, 2)|accumulate($LI, operator.mul)|tee($LI)[1])])

note([(k, list(v)) for k, v in itertools.groupby(sorted($LI), key=lambda q: q % 2)])

note(operator.$(attrgetter("x", "size")(G_point)|itemgetter(0, -1)([$I, $I])|methodcaller("upper")($S)|add($I, $I)|contains($LI, $I)|index($I)|countOf($LI, $I)|matmul($T, $T)|iadd([1], $LI)|is_($LI, None)|truth($LI)))

note(math.$(floor($F if $F == $F and abs($F) < 1e9 else 1.5)|gcd($I, $I)|hypot(3.0, $I)|isclose($I, 2.0)|prod($LI)|copysign(1.0, $F)|isqrt(abs($I))|fsum($LI)|comb(5, abs($I) % 5)))

note(bytes($S, "utf8").$(hex()|decode()|upper()|split(b"a")|find(b"b")|__len__()|startswith(b"a")), bytearray(b"ab")[0], b"%d" % $I)

note($S.$(partition("b")|rsplit("a", 1)|zfill(6)|center(7, "*")|encode()|casefold()|isalpha()|startswith(("a", "b"))|translate({97: "q"})|rjust(5)|splitlines()|swapcase()|removeprefix("a")|join(["x", "y"])|expandtabs()|isdigit()|rfind("c")))

note(f"{$I:>5}|{$I:+d}|{$F:.2f}|{$S!r:<8}|{$I:#x}|{$B}|{$LI}", f"{$I=}", "%(a)s" % {"a": $I}, "{0[0]}".format($LI + [1]), format($I, "b"))

note(int("12") + int("7", 8), float("1e3"), complex(1, $I), str(b"a", "ascii"), chr(97), ord("b"), bin($I), hex($I), oct($I), divmod($I, 3), pow($I, 2, 5), round(2.5))

note(sorted($DI), sorted($LI, key=lambda q: (q % 2, -q)), min($LI, default=0), max("ab", "abc", key=len), list(enumerate($S, 1)), list(map(max, $LI, [1, 5])), list(zip($LI, $S, strict=False)), any($LI), all($LI))

note(isinstance($I, (int, type(None))), issubclass(CBoth, CRight), callable(fib), type(CBoth).__name__, isinstance(G_both, CRegistered), type($T) is torch.Tensor, id(G_both) == id(G_both), vars(G_point).keys() >= {"x"}, dir(CPair)[-1])

note(getattr(G_point, $("x"|"nope"|"size"), $I), hasattr(G_point, "y"), G_point.__dict__["x"], type(G_point).__name__, G_point.__class__.__mro__[-1].__name__)

class $C(CBoth, tag=$S):
    size = $I
    def who(self, n): return super().who(n) - self.size
    def __init__(self): self.z = [q * self.size for q in $LI]
$o = $C()
$a:I = $o.who($I)
note($o.z, CRegistered.known[-1])

def $f($x, *$y, k=$I, **$z):
    $BODY
    return $x + len($y) + k
$a:I = $f($I, *$LI, **{"k": $I, "other": $T})

$f = [lambda q, i=i: q + i for i in range(3)] + [lambda q: q + i for i in (7, 8)]
note([g($I) for g in $f])

$f = []
for $i in range(3):
    def $g(q=$i): return q + $i
    $f.append($g)
note([g() for g in $f])

$n = 0
while True:
    $n += 1
    if $n > $(2|3): break
    $(if $n == 2: continue|pass)
    $BODY

note([(i, j) for i in $LI if i for j in range(i % 3) if (k := i + j) > 1], {i: [j for j in range(2)] for i in "ab"})

$a, (*$b, $c), *$d = 1, $LI + [2], $I, $I
note($a, $b, $c, $d)

$x:LI = $LI
$x[1:1] = $LI
$x[::2] = [0] * len($x[::2])
del $x[-1:]
note($x)

match ($I, $LI, $DI):
    case (0 | 1 as $a, [$b, *_], _) if $b > $a:
        note("first", $a, $b)
    case (int($a), [], {"a": $b}):
        note("second", $a, $b)
    case (_, [*$c], {**$d}):
        note("third", $c, $d)
        $BODY

match $(G_point|CPair($I, $S)|CColor.RED|$T|$F|CFrozen($I)):
    case CPoint(x=4 | 5, tags=[*$a]):
        note("point", $a)
    case CPair($b, str() as $c):
        note("pair", $b, $c)
    case CColor.RED:
        note("red")
    case torch.Tensor(shape=(3,)):
        note("tensor")
    case float($d) | CFrozen(x=$d):
        note("number", $d)
    case _:
        note("other")

note(len(locals()), "$q" in globals(), G_int if "G_int" in globals() else 0)

print("text", $I, $S, sep="-", end="$")

assert isinstance($I, int), note("never")

global_name = $I
def $f():
    global G_extra
    G_extra = $I
    return G_extra
$a:I = $f()

$t:T = torch.$(rand(3)|randn(3)|randint(0, 5, (3,)).float()|randperm(3).float()|bernoulli(torch.full((3,), 0.5)))

$t:T = NF.$(relu($T)|gelu($T)|softplus($T)|silu($T)|layer_norm($T.reshape(-1)[:3], (3,))|softmax($T.reshape(-1), 0)|mse_loss($T, $T))

$t:T = NF.dropout($T, 0.5, training=$B)

$t:T = torch.$(maximum|minimum|atan2|fmod)($T, $T)

$t = torch.arange(6).reshape(2, 3)
$a:T = $t.$(T[:, 0][:2].float()|float().mean(0)|to(torch.float64).sum(0)|permute(1, 0).reshape(-1)[:3].float()|select(0, 1).float()|flatten()[:3].float())
note($t.stride(), $t.dtype, $t.is_contiguous())

$t = torch.zeros(3)
torch.$(add|mul|sub)($T, $T, out=$t)
note($t)

$t = $T.detach().clone().requires_grad_()
$l = ($t * $T).sum()
$l.backward()
note($t.grad)

$t = $T.detach().clone().requires_grad_()
($g,) = torch.autograd.grad(($t * $t * $T.detach()).sum(), $t)
note($g)

$t = $T.detach().clone().requires_grad_()
$u:T = CTwice.apply($t, $I)
note($u.requires_grad, $u.grad_fn is not None)

$t = $T.detach().clone().requires_grad_()
$h = $t.register_hook(lambda g: note("hook") or g * 2)
($t * 3).sum().backward()
$h.remove()
note($t.grad)

$u:T = torch.func.$(grad(lambda q: (q * q).sum())|vmap(lambda q: q * 2))($T.detach())

with torch.$(no_grad()|enable_grad()|inference_mode()|autocast("cpu", dtype=torch.bfloat16)|set_grad_enabled($B)):
    $u:T = $T * 2
    $BODY

@torch.no_grad()
def $f(q): return q * 2 + $I
note($f($T).requires_grad)

$v = $T[$(0:2|1:|::2|None|...|-1:)]
$v.$(mul_(2)|add_(1)|zero_()|copy_(torch.ones(())))
note($v.stride(), $v.shape)

$u = $T.detach().clone()
$u.$(data = torch.ones(3)|requires_grad = True|data.mul_(2)|extra = 5|grad = torch.ones_like($u))
note($u, $u.grad)

note($T.$(tolist()|shape|dtype|device.type|numel()|size()|stride()|sum().item()|nonzero().shape|unique().numel()|argmax().item()|max(0).values|topk(1).indices|numpy(force=True).sum()|isnan().any()|data_ptr() > 0|type()|is_leaf|element_size()))

if $T.detach().sum() $(>|<|>=) $I:
    $BODY

note(len($T) if $T.dim() else 0, [q.shape for q in $T.reshape(-1)[:2]], $T.is_floating_point(), torch.is_tensor($I), torch.numel($T))

note(np.$(float64($I) * 2|array($LI).sum()|arange(3).tolist()|ones(2).shape|int64($I) + 1|maximum(2, $I)), torch.from_numpy(np.arange(3.0)).float() * 2)

$z = torch.complex($T.detach(), torch.ones_like($T.detach()))
note(($z * $z.conj()).real, $z.dtype, $z.abs())

$u:T = torch.einsum("i,i->i", $T.reshape(-1)[:2], torch.ones(2)).sum() + torch.zeros(3)

$u:T = torch.stack([$T.reshape(-1)[:1] for _ in range(3)]).reshape(3)

$u:T = functools.reduce(torch.add, $LT, $T)

$u:T = sum($LT, start=$T) / max(len($LT), 1)

$u:T = G_net($T.detach().reshape(-1)[:3]$(|, "odd"|, mode="all"))
note(G_net.calls, G_net.training)

$u:T = G_net.blocks[$(0|1|-1)]($T$(|, shift=$T))
note(G_net.blocks[0].seen, len(G_net.blocks), "a" in G_net.table)

for $n, $p in G_net.named_parameters():
    note($n, $p.shape, $p.requires_grad)
    $(if 'linear' in $n: break|pass)

G_net.$(train($B)|zero_grad()|blocks[0].seen.zero_()|scale = $I|eval()|requires_grad_($B))
note(sorted(G_net.state_dict()), [type(m).__name__ for m in G_net.children()])

$l = G_net($T.detach().reshape(-1)[:3]).sum()
if $l.requires_grad: $l.backward()
note(G_net.linear.bias.grad)
with torch.no_grad():
    for $p in G_net.parameters(): $p.sub_(0.1 * $p.grad if $p.grad is not None else 0)

$n = nn.$(Linear(3, 2)|Sequential(nn.ReLU(), nn.Identity())|LayerNorm(3)|Identity())
note($n($T.detach().reshape(-1)[:3].clone() if $T.numel() > 2 else torch.ones(3)).shape, isinstance($n, nn.Module))

$h = G_net.linear.register_forward_hook(lambda m, a, out: note("ran") or out)
note(G_net(torch.ones(3)).shape)
$h.remove()

$p = types.SimpleNamespace(a=$I, t=$T)
$p.a += 1
note($p.a, $p == types.SimpleNamespace(a=1), sorted(vars($p)))

$w = list(map(functools.partial(strict, b=$I), $LI))
note($w, functools.partial(strict, 1)(2, c=$I), [*filter(None, $LI)])

note(copy.copy(G_point), copy.deepcopy(CPoint($I, [1, [2]])), copy.copy($LI), copy.deepcopy($DI))

$i = iter($LI)
note([*zip($i, $i)], next($i, None))

note(sum(i for i in (yield_ for yield_ in $LI)), *[q for q in $LI], **{}) if $B else note()

$a:I = (lambda *q, k=$I: sum(q) + k)(*$LI)

$a:I = sys._getframe().f_lineno * 0 + $I

try:
    $(int("x")|[][3]|{}["k"]|None.a|1 // 0|"a" + 1|$T.nope|torch.ones(2) @ torch.ones(3)|next(iter([]))|nope|(1, 2)[5]|int(None)|{[]: 1}|len(5)|CPoint()|CColor(9)|[].remove(1)|a, b = [1]|$T[7]|"%d" % "x"|assert_)
except Exception as error:
    note(type(error).__name__, str(error)[:60])
    $BODY

$l = [1, $I]
$l.extend($l[-1] + v for v in $LI)
$l += (len($l) for _ in range(3))
note($l)

def $g():
    yield 1
    yield $I
    raise KeyError("drawn")
$l, $d, $s, $q = [0], {}, {1, 2, 3}, collections.deque([7], 4)
try:
    $($l.extend($g())|$d.update((k, 1) for k in $g())|$s.update($g())|$s.difference_update($g())|$q.extendleft($g())|$l[1:] = $g())
except KeyError as error:
    note(type(error).__name__)
note($l, $d, sorted($s), list($q))

try:
    note($("a" + CText("b")|[1] * np.int64(2)|CText("a") * 2|(1,) + CRow((2, 3))|1.5 + CWhole(5)|True + CWhole(2)|CWhole(3) == 3.0|[1] + CRow((1,))))
except TypeError as error:
    note(str(error))

$m = CMissing(a=$I)
try:
    note($m["a"], $m[$S], dict.__getitem__($m, "z"))
finally:
    note(len($m), collections.defaultdict(int).__getitem__("z"))

$n = CByNumber($I % 4)
note(list($n), $I in $n, [v for v in $n], tuple(zip($n, $n)), next(iter($n), None))

$t:T = torch.tensor([$T.detach().sum(), $F, 2])
$t.unsqueeze_(0)
$t.t_()
note($t.shape, np.dtype("float32") == np.float32, np.issubdtype(np.int8, np.integer))

$e = None
try:
    raise $(ValueError(1)|KeyError($S))
except (ValueError, KeyError) as error:
    $e = error
    note(sys.exc_info()[1] is error)
$BODY
note(type($e).__name__, $e.args, $e.__traceback__ is not None)
'''
