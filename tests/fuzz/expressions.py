"""Random expressions of a wanted type."""

from .scope import SCALARS, Source, Type

TENSOR_UNARY = ("sin()", "cos()", "relu()", "abs()", "neg()", "clone()", "detach()", "exp().clamp(max=9.0)", "tanh()",
                "reshape(-1)", "contiguous()", "flip(0)", "view(-1)", "cumsum(0)", "sigmoid()", "double().float()", "T", "t()",
                "unsqueeze(0).squeeze(0)", "roll(1)", "square().clamp(max=50.0)", "expand(3)", "mean() + torch.zeros(3)")


class Expressions(Source):
    """Grammar of expressions; ``depth`` bounds their nesting."""

    classes: list[dict]
    functions: list[tuple[str, Type]]
    generators: list[tuple[str, Type]]

    def expr(self, wanted: Type, depth: int = 2) -> str:
        known = self.scope.of(wanted)
        if known and (depth <= 0 or self.chance(0.45)):
            return self.pick(known)
        if depth > 0 and self.chance(0.06):
            return self.general(wanted, depth - 1)
        if isinstance(wanted, tuple):
            return getattr(self, "expr_" + wanted[0])(wanted, depth)
        return getattr(self, "expr_" + wanted)(depth)

    def general(self, wanted: Type, depth: int) -> str:
        """Forms that exist for each type."""
        e = self.expr
        table = {
            lambda: f"({e(wanted, depth)} if {self.cond(depth)} else {e(wanted, depth)})": 3,
            lambda: f"(lambda q: {self.with_local('q', wanted, depth)})({e(wanted, depth)})": 2,
            lambda: f"[{e(wanted, depth)}, {e(wanted, depth)}][{self.pick((0, 1, -1))}]": 2,
            lambda: f"({self.walrus(wanted)} := {e(wanted, depth)})" if self.scope.kind != "lambda" else e(wanted, depth): 1.5,
            lambda: f"dict(k={e(wanted, depth)}).get('k')": 1,
            lambda: f"next(iter(({e(wanted, depth)},)))": 1,
            lambda: f"max([{e(wanted, depth)}], key=id_key)": 0.5,
            lambda: f"ident({e(wanted, depth)})": 1,
            lambda: f"(*({e(wanted, depth)}, 1),)[0]": 0.5,
            lambda: f"functools.partial(ident, {e(wanted, depth)})()": 0.7,
            lambda: f"copy.copy({e(wanted, depth)})": 0.4,
        }
        return self.weighted(table)()

    def walrus(self, wanted: Type) -> str:
        name = self.fresh("w")
        self.pending.append((name, wanted))
        return name

    pending: list[tuple[str, Type]]

    def with_local(self, name: str, wanted: Type, depth: int, local: Type = None) -> str:
        """An expression in a scope with one more variable, of type ``local`` or ``wanted``; walrus there would bind elsewhere."""
        names, frozen, kind = dict(self.scope.names), set(self.scope.frozen), self.scope.kind
        self.scope.names[name] = local or wanted
        self.scope.frozen.add(name)
        self.scope.kind = "lambda"
        text = self.expr(wanted, depth)
        self.scope.names, self.scope.frozen, self.scope.kind = names, frozen, kind
        return text

    # -- scalars

    def expr_I(self, depth: int) -> str:
        if depth <= 0:
            return str(self.random.randrange(-3, 8))
        d = depth - 1
        e = self.expr
        forms = {
            lambda: str(self.random.randrange(-3, 8)): 3,
            lambda: f"({e('I', d)} {self.pick('+-*')} {e('I', d)}) % 97": 4,
            lambda: f"({e('I', d)} {self.pick(('&', '|', '^'))} {e('I', d)})": 1,
            lambda: f"({e('I', d)} // {e('I', d)})": 0.6,
            lambda: f"({e('I', d)} % ({e('I', d)} or 5))": 1,
            lambda: f"len({e(self.container(), d)})": 2,
            lambda: f"{self.pick(('abs', 'int', '-', '~', 'operator.neg'))}({e('I', d)})": 1,
            lambda: f"{self.pick(('min', 'max'))}({e('I', d)}, {e('I', d)})": 1,
            lambda: f"sum({e(('list', 'I'), d)})": 1,
            lambda: f"{e(('list', 'I'), d)}[{self.index()}]": 1.2,
            lambda: f"{e(('tuple', 'I', 'S'), d)}[0]": 0.5,
            lambda: f"{e('T', d)}.{self.pick(('dim()', 'numel()', 'shape[0]', 'size(-1)', 'ndim'))}": 1,
            lambda: f"int({e('T', d)}.sum().clamp(-50, 50).nan_to_num().item())": 0.12,
            lambda: f"sum(1 for c in {e(('list', 'I'), d)} if c > {e('I', d)})": 0.7,
            lambda: f"functools.reduce(lambda p, q: p + q, {e(('list', 'I'), d)}, {e('I', d)})": 0.5,
            lambda: self.call_function("I", d): 2,
            lambda: self.attribute("I", d): 2,
            lambda: f"{e('S', d)}.{self.pick(('count', 'find'))}('a')": 0.4,
            lambda: self.pick(("G_int", "G_list[0]", "len(G_list)", "G_dict['a']")): 1,
            lambda: f"round({e('F', d)})": 0.4,
            lambda: f"hash({e('S', d)}) % 7": 0.1,
        }
        return self.weighted(forms)()

    def expr_F(self, depth: int) -> str:
        d = depth - 1
        if depth <= 0:
            return self.pick(("0.5", "-1.25", "2.0", "0.0", "-0.0", "1e3", "float('inf')"))
        forms = {
            lambda: self.expr_F(0): 3,
            lambda: f"({self.expr('F', d)} {self.pick('+-*')} {self.expr('F', d)})": 2,
            lambda: f"float({self.expr('I', d)})": 1,
            lambda: f"({self.expr('I', d)} / {self.expr('I', d)})": 0.5,
            lambda: f"math.{self.pick(('sin', 'floor', 'fabs', 'atan'))}({self.expr('F', 0)} if 0 else 0.25)": 0.5,
            lambda: f"{self.expr('T', d)}.sum().item()": 0.1,
            lambda: "G_float": 0.7,
            lambda: f"abs({self.expr('F', d)})": 0.3,
        }
        return self.weighted(forms)()

    def expr_B(self, depth: int) -> str:
        return self.cond(depth)

    def cond(self, depth: int) -> str:
        if depth <= 0:
            return self.pick(("True", "False"))
        d, e = depth - 1, self.expr
        forms = {
            lambda: f"{e('I', d)} {self.pick(('<', '>', '==', '!=', '<=', '>='))} {e('I', d)}": 5,
            lambda: f"{e('I', d)} < {e('I', d)} <= {e('I', d)}": 1,
            lambda: f"not {e('B', d)}": 1,
            lambda: f"({e('B', d)} {self.pick(('and', 'or'))} {e('B', d)})": 2,
            lambda: f"{e('I', d)} {self.pick(('in', 'not in'))} {e(self.pick((('list', 'I'), ('set',))), d)}": 1.5,
            lambda: f"{self.string()} in {e(('dict', self.pick(('I', 'T'))), d)}": 1,
            lambda: f"isinstance({e(self.any_type(), d)}, {self.pick(('int', 'list', '(str, dict)', 'torch.Tensor', 'float'))})": 1,
            lambda: f"{e('S', d)} {self.pick(('==', '<', 'in'))} {e('S', d)}": 0.7,
            lambda: f"{e(self.any_type(), d)} is {self.pick(('None', 'not None'))}": 0.5,
            lambda: f"{e(('list', 'I'), d)} {self.pick(('==', '<'))} {e(('list', 'I'), d)}": 0.5,
            lambda: f"bool({e(self.container(), d)})": 0.7,
            lambda: f"{e('T', d)}.requires_grad": 0.2,
            lambda: f"bool(({e('T', d)} > 0).{self.pick(('any', 'all'))}())": 0.12,
            lambda: f"{self.pick(('any', 'all'))}(c > 0 for c in {e(('list', 'I'), d)})": 0.6,
            lambda: f"hasattr({self.object(d)}, {self.pick(('a', 'b', 'total', 'nope'))!r})": 0.6,
            lambda: f"{self.object(d)} {self.pick(('==', '<', 'is', 'is not', '!='))} {self.object(d)}": 0.6,
            lambda: "torch.is_grad_enabled()": 0.3,
        }
        return self.weighted(forms)()

    def string(self) -> str:
        return repr(self.pick(("a", "b", "k", "total")))

    def expr_S(self, depth: int) -> str:
        if depth <= 0:
            return repr(self.pick(("", "a", "bc", "abca", "é")))
        d, e = depth - 1, self.expr
        forms = {
            lambda: self.expr_S(0): 3,
            lambda: f"({e('S', d)} + {e('S', d)})[:9]": 1.5,
            lambda: f"f'{{{self.plain('I', d)}}}-{{{self.plain('S', d)}!r:>4}}'": 1.5,
            lambda: f"str({e(self.pick(('I', 'F', 'B', ('list', 'I'), ('tuple', 'I', 'S'))), d)})": 1.5,
            lambda: f"{e('S', d)}.{self.pick(('upper()', 'strip()', 'replace(chr(97), chr(98))', 'title()', 'split()[0:1].__str__()'))}": 1,
            lambda: f"'%s|%d' % ({e('S', d)}, {e('I', d)})": 0.7,
            lambda: f"','.join(str(c) for c in {e(('list', 'I'), d)})": 0.7,
            lambda: f"'{{}}:{{x}}'.format({e('I', d)}, x={e('S', d)})": 0.5,
            lambda: f"repr({self.object(d)})": 0.6,
            lambda: f"type({e(self.any_type(), d)}).__name__": 0.6,
            lambda: f"{self.object(d)}.__class__.__name__": 0.3,
            lambda: "str(torch.get_default_dtype())": 0.2,
        }
        return self.weighted(forms)()

    def plain(self, wanted: Type, depth: int) -> str:
        """For f-strings, which take no quotes or braces inside."""
        text = self.expr(wanted, depth)
        return text if not set(text) & set("'{}\\\"!:") else {"I": "G_int", "S": "G_str"}[wanted]

    def expr_N(self, depth: int) -> str:
        return "None"

    def index(self) -> str:
        return self.pick(("0", "-1", "0", "1", "2", "-2", "7")) if self.chance(0.8) else self.expr("I", 1)

    # -- tensors

    def expr_T(self, depth: int) -> str:
        if depth <= 0:
            return self.pick(self.scope.of("T") or ["torch.ones(3)"])
        d, e = depth - 1, self.expr
        forms = {
            lambda: f"({e('T', d)} {self.pick('+-*')} {e('T', d)})": 4,
            lambda: f"({e('T', d)} {self.pick('+-*/')} {e(self.pick(('F', 'I')), d)})": 3,
            lambda: f"({e(self.pick(('F', 'I')), d)} {self.pick('+-*')} {e('T', d)})": 1,
            lambda: f"{e('T', d)}.{self.pick(TENSOR_UNARY)}": 4,
            lambda: f"torch.{self.pick(('sin', 'relu', 'neg', 'cos', 'sigmoid', 'zeros_like', 'ones_like'))}({e('T', d)})": 2,
            lambda: f"torch.where({e('T', d)} > 0, {e('T', d)}, {e('T', d)})": 1,
            lambda: f"torch.stack([{e('T', d)}, {e('T', d)}])[{self.pick((0, 1))}]": 1,
            lambda: f"torch.cat([{e('T', d)}, {e('T', d)}])[:3]": 0.7,
            lambda: f"sum({e(('list', 'T'), d)}, {e('T', d)})": 0.7,
            lambda: f"{e(('list', 'T'), d)}[{self.index()}]": 1,
            lambda: f"{e(('dict', 'T'), d)}[{self.string()}]": 0.5,
            lambda: self.call_function("T", d): 2,
            lambda: self.attribute("T", d): 2,
            lambda: f"torch.{self.pick(('zeros', 'ones', 'arange'))}(3).float()": 0.7,
            lambda: f"{e('T', d)}[torch.tensor([2, 0, 1])]": 0.3,
            lambda: f"torch.full((3,), {e('F', d)})": 0.3,
            lambda: f"torch.tensor({e(('list', 'I'), d)}[:3] + [0, 0, 0], dtype=torch.float32)[:3]": 0.3,
            lambda: "G_tensor": 0.7,
            lambda: f"torch.add({e('T', d)}, {e('T', d)}, alpha={e('I', 0)})": 0.4,
        }
        return self.weighted(forms)()

    # -- containers

    def container(self) -> Type:
        return self.pick((("list", "I"), ("list", "I"), ("dict", "I"), ("set",), ("tuple", "I", "S"), ("list", "T"), "S"))

    def any_type(self) -> Type:
        return self.pick(("I", "F", "B", "S", "T", "N", ("list", "I"), ("list", "T"), ("dict", "I"), ("dict", "T"), ("set",),
                          ("tuple", "I", "S"), ("tuple", "T", "I"), self.object_type()))

    def object_type(self) -> Type:
        return ("obj", self.random.randrange(len(self.classes))) if self.classes else "I"

    def expr_list(self, wanted: Type, depth: int) -> str:
        inner = wanted[1]
        count = self.random.randrange(0 if inner == "I" else 1, 4)
        if depth <= 0:
            return f"[{', '.join(self.expr(inner, 0) for _ in range(count))}]"
        d, e = depth - 1, self.expr
        item = self.fresh("c")
        forms = {
            lambda: f"[{', '.join(e(inner, d) for _ in range(count))}]": 3,
            lambda: f"[*{e(wanted, d)}, {e(inner, d)}]": 1,
            lambda: f"({e(wanted, d)} + {e(wanted, d)})[:5]": 1,
            lambda: f"list({e(wanted, d)})": 1,
            lambda: f"{e(wanted, d)}[{self.pick(('::-1', '1:', ':2', '::2', '-2:'))}]": 1,
            lambda: f"[{self.with_local(item, inner, d)} for {item} in {e(wanted, d)}]": 1.5,
            lambda: f"{e(wanted, d)}.copy()": 0.5,
            lambda: f"list(reversed({e(wanted, d)}))": 0.5,
            lambda: f"(({e(wanted, d)}) * 2)[:4]": 0.4,
            lambda: f"list(map(lambda {item}: {self.with_local(item, inner, d)}, {e(wanted, d)}))": 0.7,
            lambda: f"copy.deepcopy({e(wanted, d)})" if inner == "I" else e(wanted, d): 0.3,
            lambda: f"list({e(('iter', inner), d)})": 1,
        }
        if inner == "I":
            forms |= {
                lambda: f"list(range({e('I', d)} % 5))": 1.5,
                lambda: f"sorted({e(self.pick((wanted, ('set',))), d)}{self.pick(('', ', reverse=True', ', key=lambda k: -k'))})": 1,
                lambda: f"[c for c in {e(wanted, d)} if c {self.pick(('> 0', '% 2', '!= 3'))}]": 1,
                lambda: f"list(filter(lambda k: k > 0, {e(wanted, d)}))": 0.5,
                lambda: f"list({e(('dict', 'I'), d)}.values())": 0.7,
                lambda: f"[i * j for i in {e(wanted, d)} for j in range(2) if i != j]": 0.5,
                lambda: f"[k + v for k, v in enumerate({e(wanted, d)})]": 0.5,
                lambda: f"list(itertools.{self.pick(('accumulate', 'chain'))}({e(wanted, d)}))": 0.4,
                lambda: f"list(itertools.islice({e(('iter', 'I'), d)}, 2))": 0.4,
            }
        return self.weighted(forms)()

    def expr_tuple(self, wanted: Type, depth: int) -> str:
        d = depth - 1
        if depth > 0 and self.chance(0.15):
            return f"tuple([{', '.join(self.expr(t, d) for t in wanted[1:])}])"
        return f"({', '.join(self.expr(t, d) for t in wanted[1:])},)"

    def expr_dict(self, wanted: Type, depth: int) -> str:
        inner = wanted[1]
        d, e = depth - 1, self.expr
        if depth <= 0:
            return f"{{'a': {e(inner, 0)}, 'b': {e(inner, 0)}}}"
        forms = {
            lambda: f"{{{', '.join(f'{k!r}: {e(inner, d)}' for k in self.random.sample(['a', 'b', 'k'], self.random.randrange(1, 4)))}}}": 3,
            lambda: f"dict(a={e(inner, d)}, b={e(inner, d)})": 1,
            lambda: f"{{**{e(wanted, d)}, 'k': {e(inner, d)}}}": 1,
            lambda: f"({e(wanted, d)} | {{'b': {e(inner, d)}}})": 0.7,
            lambda: f"{{k: {self.with_local('v', inner, d)} for k, v in {e(wanted, d)}.items()}}": 1,
            lambda: f"dict(zip('abk', {e(('list', inner), d)}))": 0.7,
            lambda: f"{e(wanted, d)}.copy()": 0.5,
            lambda: f"dict(sorted({e(wanted, d)}.items(), key=lambda kv: kv[0]))": 0.4,
            lambda: f"dict.fromkeys('ab', {e(inner, d)})": 0.4,
        }
        return self.weighted(forms)()

    def expr_set(self, wanted: Type, depth: int) -> str:
        d, e = depth - 1, self.expr
        if depth <= 0:
            return "{1, 2, 5}"
        forms = {
            lambda: f"{{{e('I', d)}, {e('I', d)}, 2}}": 2,
            lambda: f"set({e(('list', 'I'), d)})": 2,
            lambda: f"({e(wanted, d)} {self.pick('|&-^')} {e(wanted, d)})": 1,
            lambda: f"{{c % 5 for c in {e(('list', 'I'), d)}}}": 1,
        }
        return self.weighted(forms)()

    def expr_iter(self, wanted: Type, depth: int) -> str:
        inner = wanted[1]
        d, e = depth - 1, self.expr
        forms = {
            lambda: f"iter({e(('list', inner), d)})": 2,
            lambda: f"({self.with_local('c', inner, d)} for c in {e(('list', inner), d)})": 2,
            lambda: f"map(lambda c: {self.with_local('c', inner, d)}, {e(('list', inner), d)})": 1,
            lambda: f"reversed({e(('list', inner), d)})": 0.5,
            lambda: f"itertools.chain({e(('list', inner), d)}, {e(('list', inner), d)})": 0.5,
        }
        for name, kind in self.generators:
            if kind == inner:
                forms[lambda name=name: f"{name}({e('T', d)}, {e('I', d)})"] = 3
        return self.weighted(forms)()

    def expr_fn(self, wanted: Type, depth: int) -> str:
        return f"(lambda q: {self.with_local('q', wanted[1], depth - 1, 'I')})"

    # -- calls and objects

    def expr_obj(self, wanted: Type, depth: int) -> str:
        cls = self.classes[wanted[1]]
        return f"{cls['name']}({self.expr('I', depth - 1)}, {self.expr('T', depth - 1)})"

    def object(self, depth: int) -> str:
        known = [n for n, _ in self.scope.like("obj")]
        if known and self.chance(0.85):
            return self.pick(known)
        if not self.classes:
            return "G_dict"
        return self.expr(self.object_type(), depth)

    def attribute(self, wanted: Type, depth: int) -> str:
        """Attribute, property or method of an object."""
        objects = self.scope.like("obj")
        if not objects:
            return self.expr(wanted, depth)
        name, kind = self.pick(objects)
        members = [m for m, t in self.classes[kind[1]]["members"] if t == wanted]
        if not members:
            return self.expr(wanted, depth)
        member = self.pick(members)
        return f"{name}.{member.replace('#', self.expr('I', depth - 1)).replace('@', self.expr('T', depth - 1))}"

    def call_function(self, wanted: Type, depth: int) -> str:
        candidates = [n for n, t in self.functions if t == wanted]
        local = [n for n, t in self.scope.like("fn") if t[1] == wanted]
        if local and self.chance(0.6):
            return f"{self.pick(local)}({self.expr('I', depth)})"
        if not candidates:
            return self.expr(wanted, depth)
        name = self.pick(candidates)
        t, i = self.expr("T", depth), self.expr("I", depth)
        forms = (f"{name}({t}, {i})", f"{name}({t})", f"{name}({t}, b={i})", f"{name}({t}, {i}, {self.expr('I', 0)}, k={i})",
                 f"{name}(*({t}, {i}), **{{'k': {self.expr('I', 0)}}})", f"{name}({t}, other={i}, k=2)")
        return self.pick(forms)

    def scalar(self) -> Type:
        return self.pick(SCALARS)
