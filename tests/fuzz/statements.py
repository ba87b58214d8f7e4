"""Random statements, simple and compound."""

from .expressions import Expressions
from .scope import Type

EXCEPTIONS = ("ValueError", "KeyError", "Boom", "RuntimeError", "IndexError", "TypeError", "ZeroDivisionError", "AttributeError",
              "LookupError", "ArithmeticError", "StopIteration", "AssertionError")


class Statements(Expressions):
    """Grammar of statements; ``budget`` bounds how many a program has."""

    breaks = 0.02  # how often graph_break() is called

    def ex(self, wanted: Type, depth: int = 2) -> str:
        """An expression that compiles (walrus is not allowed everywhere); its walrus targets become variables."""
        for _ in range(6):
            self.pending = []
            text = self.expr(wanted, depth)
            try:
                compile(f"({text})", "<try>", "eval")
            except SyntaxError:
                continue
            for name, kind in self.pending:
                if self.chance(0.4):
                    self.scope.names[name] = kind
            return text
        return self.expr(wanted, 0)

    def body(self, size: int) -> None:
        for _ in range(size):
            if self.budget <= 0:
                break
            self.statement()

    def statement(self) -> None:
        self.budget -= 1
        compound = self.indent < 6 and self.budget > 2
        table = {self.assign: 9, self.reassign: 4, self.augmented: 4, self.unpack: 2, self.mutate: 5, self.note: 4,
                 self.tensor_inplace: 3, self.set_attribute: 3, self.graph_break: 100 * self.breaks, self.printing: 0.5,
                 self.delete: 0.4, self.assertion: 0.4, self.leave: 0.3, self.raising: 0.5, self.globals_change: 1,
                 self.use_iterator: 1.5}
        if compound:
            table |= {self.branch: 3, self.loop: 3, self.while_loop: 1, self.attempt: 3, self.managed: 2, self.matching: 1,
                      self.closure: 2, self.local_generator: 1, self.local_class: 0.12}
        self.weighted(table)()

    # -- simple statements

    def new_variable(self, wanted: Type) -> str:
        name = self.fresh()
        self.scope.names[name] = wanted
        return name

    def assign(self) -> None:
        wanted = self.any_type() if self.chance(0.6) else self.pick(("T", "I"))
        text = self.ex(wanted)
        if self.chance(0.05):
            self.emit(f"{self.new_variable(wanted)} = {self.new_variable(wanted)} = {text}")
        else:
            self.emit(f"{self.new_variable(wanted)} = {text}")

    def reassign(self) -> None:
        names = [n for n in self.scope.names if n not in self.scope.frozen]
        if names:
            name = self.pick(names)
            self.emit(f"{name} = {self.ex(self.scope.names[name])}")

    def augmented(self) -> None:
        wanted = self.pick(("I", "T", ("list", "I"), "S", ("set",), ("dict", "I"), "F"))
        names = [n for n in self.scope.of(wanted) if n not in self.scope.frozen]
        if not names:
            return
        op = {"I": self.pick(("+=", "-=", "*=", "^=", "|=")), "T": self.pick(("+=", "*=", "-=")), "S": "+=", "F": "*="}.get(
            wanted if isinstance(wanted, str) else "", "")
        op = op or {"list": "+=", "set": self.pick(("|=", "-=", "&=")), "dict": "|="}[wanted[0]]
        self.emit(f"{self.pick(names)} {op} {self.ex(wanted, 1)}")

    def unpack(self) -> None:
        a, b, c = self.fresh(), self.fresh(), self.fresh()
        form = self.random.randrange(4)
        if form == 0:
            self.emit(f"{a}, {b} = {self.ex(('tuple', 'T', 'I'))}")
            self.scope.names |= {a: "T", b: "I"}
        elif form == 1:
            self.emit(f"{a}, *{b} = {self.ex(('list', 'I'))} or [3, 4]")
            self.scope.names |= {a: "I", b: ("list", "I")}
        elif form == 2:
            self.emit(f"({a}, {b}), {c} = {self.ex(('tuple', 'I', 'S'))}, {self.ex('T')}")
            self.scope.names |= {a: "I", b: "S", c: "T"}
        else:
            names = [n for n in self.scope.of("I") if n not in self.scope.frozen]
            if len(names) > 1:
                x, y = self.random.sample(names, 2)
                self.emit(f"{x}, {y} = {y}, {x}")

    def mutate(self) -> None:
        """Changes of containers."""
        target = self.pick(self.scope.like("list") + self.scope.like("dict") + self.scope.like("set") or [(None, None)])
        name, kind = target
        if name is None:
            return
        if kind[0] == "list":
            item = self.ex(kind[1], 1)
            self.emit(f"{name}{self.pick((f'.append({item})', f'.insert(1, {item})', f'[0:1] = [{item}]', f'.extend([{item}])', '.reverse()', f'[{self.index()}] = {item}', '.pop()', '.clear()' if self.chance(.2) else '.reverse()', f' += [{item}]' if name not in self.scope.frozen else '.copy()', f'[len({name}):] = ({item},)'))}")
            if kind[1] == "I" and self.chance(0.2):
                self.emit(f"{name}.{self.pick(('sort()', 'sort(reverse=True)', 'remove(2)', 'index(3)', 'sort(key=lambda k: -k)'))}")
        elif kind[0] == "dict":
            key, value = self.string(), self.ex(kind[1], 1)
            self.emit(self.pick((f"{name}[{key}] = {value}", f"{name}.update(a={value})", f"{name}.setdefault({key}, {value})",
                                 f"{name}.pop({key}, None)", f"del {name}[{key}]", f"{name}.popitem()",
                                 f"{name}[{key}], {name}['b'] = {value}, {value}")))
        else:
            self.emit(f"{name}.{self.pick(('add', 'discard', 'remove'))}({self.ex('I', 1)})" if self.chance(0.8) else f"{name}.update({self.ex(('list', 'I'), 1)})")

    def tensor_inplace(self) -> None:
        names = self.scope.of("T")
        if not names:
            return
        name = self.pick(names)
        value = self.ex("T", 1)
        form = self.pick(("add_", "mul_", "copy_", "index", "slice", "view", "zero_", "masked", "fill_", "attr"))
        if form in ("add_", "mul_", "copy_"):
            self.emit(f"{name}.{form}({value})")
        elif form == "index":
            self.emit(f"{name}[{self.pick((0, 1, -1))}] = {self.ex(self.pick(('F', 'I')), 1)}")
        elif form == "slice":
            self.emit(f"{name}[{self.pick(('1:', ':2', '::2'))}] {self.pick(('=', '+=', '*='))} {self.ex('F', 0)}")
        elif form == "view":
            view = self.new_variable("T")
            self.emit(f"{view} = {name}{self.pick(('.view(-1)', '[:]', '.detach()', '.view(3)', '.unsqueeze(0)[0]', '.T', '.reshape(3)'))}")
        elif form in ("zero_", "fill_"):
            self.emit(f"{name}.{form}({self.ex('F', 0) if form == 'fill_' else ''})")
        elif form == "masked":
            self.emit(f"{name}.masked_fill_({name} > 1, {self.ex('F', 0)})")
        else:
            self.emit(f"note({name}.shape, {name}.dtype, {name}.is_contiguous())")

    def set_attribute(self) -> None:
        objects = self.scope.like("obj")
        if not objects:
            return
        name, kind = self.pick(objects)
        cls = self.classes[kind[1]]
        settable = [(m, t) for m, t in cls["settable"]]
        member, wanted = self.pick(settable)
        if self.chance(0.1):
            self.emit(f"{self.pick((f'del {name}.{member}', f'delattr({name}, {member!r})', f'note(getattr({name}, {member!r}, None))'))}")
        elif self.chance(0.1):
            self.emit(f"setattr({name}, {member!r}, {self.ex(wanted, 1)})")
        elif self.chance(0.3) and wanted in ("I", "T"):
            self.emit(f"{name}.{member} += {self.ex(wanted, 1)}")
        elif self.chance(0.1):
            self.emit(f"{name}.__dict__[{member!r}] = {self.ex(wanted, 1)}" if not cls["slots"] else f"note({name}.{member})")
        else:
            self.emit(f"{name}.{member} = {self.ex(wanted, 1)}")

    def note(self) -> None:
        """Something observable: an entry in the list of notes."""
        self.emit(f"note({self.ex(self.pick(('I', 'S', 'B', 'T', ('list', 'I'), ('dict', 'I'))), 1)})")

    def graph_break(self) -> None:
        self.emit("graph_break()")

    def printing(self) -> None:
        self.emit(f"print({self.ex(self.pick(('I', 'S', ('list', 'I'))), 1)}, {self.ex('I', 0)}, sep='|')")

    def delete(self) -> None:
        names = [n for n in self.scope.names if n not in self.scope.frozen]
        if names:
            name = self.pick(names)
            self.emit(f"del {name}")
            if self.chance(0.9):
                del self.scope.names[name]

    def assertion(self) -> None:
        self.emit(f"assert {self.ex('B', 1)}, {self.ex('S', 1)}")

    def leave(self) -> None:
        if self.indent > 1:
            if self.scope.loops and self.chance(0.6):
                self.emit(self.pick(("break", "continue")))
            else:
                self.emit(f"return {self.results()}")

    def raising(self) -> None:
        if self.scope.handlers or self.chance(0.15):
            self.raise_statement()

    def raise_statement(self) -> None:
        name = self.pick(EXCEPTIONS)
        forms = [f"raise {name}({self.ex(self.pick(('I', 'S')), 1)})", f"raise {name}", f"raise {name}('x') from None",
                 f"raise {name}(1, {self.ex('I', 0)})"]
        if "error" in self.scope.names:
            forms += ["raise", f"raise {name}('again') from error", "raise error", "raise"]
        self.emit(self.pick(forms))

    def globals_change(self) -> None:
        self.emit(self.pick(("G_list.append(len(G_list))", "G_dict['a'] += 1", "bump_global()", f"G_dict[{self.string()}] = {self.ex('I', 1)}",
                             "G_obj.a = G_obj.a + 1", f"set_global({self.ex('I', 1)})", "note(G_int)", "G_tensor.add_(1)", "note(dict(G_dict))")))

    def use_iterator(self) -> None:
        iters = self.scope.like("iter")
        if not iters:
            kind = ("iter", self.pick(("I", "T")))
            text = self.ex(kind, 2)
            self.emit(f"{self.new_variable(kind)} = {text}")
            return
        name, kind = self.pick(iters)
        form = self.random.randrange(6)
        if form == 0:
            self.emit(f"note(list({name}))")
        elif form == 1:
            self.emit(f"{self.new_variable(kind[1])} = next({name})")
        elif form == 2:
            self.emit(f"note(next({name}, None))")
        elif form == 3:
            with_loop = self.fresh("i")
            self.emit(f"for {with_loop} in {name}: note({with_loop}){'; break' if self.chance(.5) else ''}")
        elif form == 4:
            self.emit(f"note([q for q, _ in zip({name}, range(2))])")
        else:
            self.emit(f"note({self.ex('I', 1)} in {name})" if kind[1] == "I" else f"note(sum(1 for _ in {name}))")

    def results(self) -> str:
        names = [n for n in self.scope.names if self.scope.names[n] != "N"]
        chosen = self.random.sample(names, min(len(names), self.random.randrange(1, 6)))
        return ", ".join(chosen) + "," if chosen else "None"

    # -- compound statements

    def branch(self) -> None:
        self.emit(f"if {self.ex('B')}:")
        with self.block():
            self.body(self.random.randrange(1, 4))
        if self.chance(0.3):
            self.emit(f"elif {self.ex('B', 1)}:")
            with self.block():
                self.body(self.random.randrange(1, 3))
        if self.chance(0.5):
            self.emit("else:")
            with self.block():
                self.body(self.random.randrange(1, 3))

    def loop(self) -> None:
        i, j = self.fresh("i"), self.fresh("i")
        forms = [
            (f"{i} in range({self.random.randrange(1, 4)})", {i: "I"}),
            (f"{i} in {self.ex(('list', 'I'), 1)}[:3]", {i: "I"}),
            (f"{i} in {self.ex(('list', 'T'), 1)}", {i: "T"}),
            (f"{i}, {j} in enumerate({self.ex(('list', self.pick(('I', 'T'))), 1)})", {i: "I"}),
            (f"{i}, {j} in {self.ex(('dict', 'I'), 1)}.items()", {i: "S", j: "I"}),
            (f"{i}, {j} in zip({self.ex(('list', 'T'), 1)}, {self.ex(('list', 'I'), 1)})", {i: "T", j: "I"}),
            (f"{i} in {self.ex(('iter', 'I'), 1)}", {i: "I"}),
            (f"{i} in {self.ex(('set',), 1)}", {i: "I"}),
            (f"{i} in {self.ex('T', 0)}[:2]", {}),
            (f"{i} in {self.ex('S', 1)}", {i: "S"}),
        ]
        header, names = self.pick(forms)
        self.emit(f"for {header}:")
        with self.block():
            self.scope.names |= names
            self.scope.loops += 1
            self.body(self.random.randrange(1, 4))
            if self.chance(0.2):
                self.emit(f"if {self.ex('B', 1)}: {self.pick(('break', 'continue'))}")
            self.scope.loops -= 1
        if self.chance(0.2):
            self.emit("else:")
            with self.block():
                self.body(1)

    def while_loop(self) -> None:
        i = self.fresh("i")
        self.emit(f"{i} = 0")
        self.scope.names[i] = "I"
        self.scope.frozen.add(i)
        self.emit(f"while {i} < {self.random.randrange(1, 4)}{self.pick(('', '', ' and ' + self.ex('B', 1)))}:")
        with self.block():
            self.emit(f"{i} += 1")
            self.scope.loops += 1
            self.body(self.random.randrange(1, 4))
            self.scope.loops -= 1
        if self.chance(0.2):
            self.emit("else:")
            with self.block():
                self.body(1)

    def attempt(self) -> None:
        self.emit("try:")
        self.scope.handlers += 1
        with self.block(keep=0.3):
            self.body(self.random.randrange(1, 4))
            if self.chance(0.6):
                if self.chance(0.5):
                    self.emit(f"if {self.ex('B', 1)}:")
                    with self.block():
                        self.raise_statement()
                else:
                    self.raise_statement()
        self.scope.handlers -= 1
        handled = self.chance(0.85)
        if handled:
            for _ in range(self.pick((1, 1, 1, 2))):
                kinds = self.pick((self.pick(EXCEPTIONS), f"({self.pick(EXCEPTIONS)}, {self.pick(EXCEPTIONS)})", "Exception", "Exception"))
                self.emit(f"except {kinds} as error:")
                with self.block(keep=0):
                    self.scope.names["error"] = "E"
                    self.scope.frozen.add("error")
                    self.emit(self.pick(("note_error(error)", "note(type(error).__name__)", "note(error.args)", "pass", "note(str(error))")))
                    self.body(self.random.randrange(0, 3))
                    if self.chance(0.2):
                        self.raise_statement()
                self.scope.names.pop("error", None)
            if self.chance(0.15):
                self.emit("except:")
                with self.block():
                    self.body(1)
            if self.chance(0.25):
                self.emit("else:")
                with self.block():
                    self.body(self.random.randrange(1, 3))
        if not handled or self.chance(0.3):
            self.emit("finally:")
            with self.block():
                self.body(self.random.randrange(1, 3))

    def managed(self) -> None:
        name = self.fresh("m")
        managers = ["torch.no_grad()", "contextlib.nullcontext()", f"Manager({self.ex('I', 0)})", f"Manager({self.ex('I', 0)})",
                    f"managing({self.ex('T', 1)})", f"managing({self.ex('T', 1)})", "contextlib.suppress(ValueError, KeyError)",
                    "Swallow()", "torch.enable_grad()", f"torch.set_grad_enabled({self.ex('B', 0)})", "contextlib.ExitStack()"]
        first = self.pick(managers)
        second = f", {self.pick(managers)} as {name}b" if self.chance(0.2) else ""
        self.emit(f"with {first}{second}:" if self.chance(0.5) else f"with {first} as {name}{second}:")
        with self.block(keep=0.5):
            self.scope.handlers += 1
            if "ExitStack" in first and " as " in self.lines[-1]:
                self.emit(f"{name}.{self.pick(('enter_context(Manager(3))', 'callback(note, 5)'))}" if not second else "note(6)")
            self.body(self.random.randrange(1, 4))
            if self.chance(0.15):
                self.raise_statement()
            self.scope.handlers -= 1

    def matching(self) -> None:
        wanted = self.pick(("I", ("list", "I"), ("tuple", "I", "S"), ("dict", "I"), self.object_type(), "S"))
        self.emit(f"match {self.ex(wanted)}:")
        self.indent += 1
        a, b = self.fresh("p"), self.fresh("p")
        patterns = [("1 | 2 | 3", {}), (f"int() as {a} if {a} > 2", {a: "I"}), (f"[{a}, *{b}]", {a: "I", b: ("list", "I")}),
                    (f"({a}, str() as {b})", {a: "I", b: "S"}), (f"{{'a': {a}, **{b}}}", {a: "I", b: ("dict", "I")}),
                    ("[]", {}), ("'a' | 'bc'", {}), (f"[int({a}), int({b})]", {a: "I", b: "I"}), ("None | True", {})]
        if self.classes:
            patterns += [(f"{self.pick(self.classes)['name']}(a={a})", {a: "I"}), (f"{self.pick(self.classes)['name']}({a})", {a: "I"})]
        for pattern, names in self.random.sample(patterns, 3):
            self.emit(f"case {pattern}:")
            with self.block(keep=0):
                self.scope.names |= names
                self.body(self.random.randrange(1, 3))
        if self.chance(0.5):
            self.emit("case _:")
            with self.block():
                self.body(1)
        self.indent -= 1

    def closure(self) -> None:
        """A function defined inside, that reads and perhaps rebinds the variables around it."""
        name, wanted = self.fresh("f"), self.pick(("I", "T"))
        cells = [n for n in self.scope.names if n not in self.scope.frozen and n[0] in "vwpixy" and n != "q"]
        self.emit(f"def {name}(q, r={self.ex('I', 1)}, *rest):")
        outer = dict(self.scope.names)
        with self.function(inherit=True) as scope:
            scope.names |= {"q": "I", "r": "I"}
            own = [n for n in cells if outer.get(n) in ("I", "T")]
            if own and self.chance(0.5):
                target = self.pick(own)
                self.emit(f"nonlocal {target}")
                self.emit(f"{target} = {self.ex(outer[target], 1)}")
            self.budget += 1
            self.body(self.random.randrange(0, 3))
            self.emit(f"return {self.ex(wanted)}")
        self.scope.names[name] = ("fn", wanted)
        self.scope.frozen.add(name)

    def local_generator(self) -> None:
        name, wanted = self.fresh("g"), self.pick(("I", "T"))
        self.emit(f"def {name}():")
        with self.function("generator", inherit=True):
            self.generator_body(wanted)
        made = self.new_variable(("iter", wanted))
        self.emit(f"{made} = {name}()")
        if self.chance(0.5):
            self.emit(f"note(next({made}, None))")
        if self.chance(0.35):
            self.emit("try:")
            with self.block():
                self.emit(f"note({made}.{self.pick(('send(3)', 'throw(ValueError(5))', 'close()', 'throw(KeyError)', 'send(None)'))})")
            self.emit("except (StopIteration, ValueError, TypeError, KeyError) as error:")
            with self.block():
                self.emit("note_error(error)")

    def generator_body(self, wanted: Type) -> None:
        self.budget += 2
        for _ in range(self.random.randrange(1, 4)):
            if self.chance(0.5):
                self.body(1)
            form = self.random.randrange(5)
            if form == 0:
                got = self.fresh("y")
                self.emit(f"{got} = yield {self.ex(wanted, 1)}")
                self.emit(f"note({got})")
            elif form == 1:
                self.emit("try:")
                with self.block():
                    self.emit(f"yield {self.ex(wanted, 1)}")
                self.emit(self.pick(("finally:", "except ValueError as error:", "except GeneratorExit:")))
                with self.block():
                    # Across a break, an object that only the frame holds dies later than in eager mode.
                    self.emit("note('leaving')" if self.breaks == 0 and self.chance(0.2) else "pass")
                    if self.lines[-2].lstrip().startswith("except GeneratorExit"):
                        self.emit("raise")
            elif form == 2:
                self.emit(f"yield from {self.ex(('list', wanted), 1)}")
            else:
                self.emit(f"yield {self.ex(wanted, 1)}")
        if self.chance(0.3):
            self.emit(f"return {self.ex('I', 1)}")

    def local_class(self) -> None:
        name = self.fresh("K")
        self.emit(f"class {name}:")
        with self.block(keep=0):
            self.emit(f"a = {self.ex('I', 0)}")
            self.emit("def get(self): return self.a + 1")
        self.emit(f"{self.new_variable('I')} = {name}().get()")
