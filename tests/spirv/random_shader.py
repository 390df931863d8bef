"""Random compute shaders in GLSL: the same seed gives the same shader everywhere.

They terminate, and mean the same to every correct compiler: loops are counted, indices masked, shifts and divisors in
range, every variable is initialised, and floats are small integers, so that no rounding depends on contraction.
What a specialization constant may be follows from its id:

    0 and up   anything; floats are small integers
    80 and up  the length of an array: at least 1
    90         the size of the workgroup: 1, 2, 4 or 8
"""

OUTPUTS = 8  # words that each invocation writes
INPUTS = 64


class Random:
    """xorshift64*: Python's own generator may change between versions."""

    def __init__(self, seed):
        self.state = (seed * 0x9E3779B97F4A7C15 + 0x1234567) % 2**64 or 1
        for _ in range(4):
            self.next()

    def next(self):
        x = self.state
        x ^= x >> 12
        x ^= (x << 25) % 2**64
        x ^= x >> 27
        self.state = x
        return (x * 0x2545F4914F6CDD1D % 2**64) >> 32

    def below(self, bound):
        return self.next() % bound

    def one_in(self, n):
        return self.below(n) == 0

    def pick(self, items):
        return items[self.below(len(items))]


SCALARS = ["uint", "int", "bool", "float"]
VECTORS = {"uvec2": "uint", "ivec3": "int", "vec2": "float", "vec4": "float", "bvec2": "bool"}
WIDE = ["uint64_t", "int64_t", "uint16_t", "int8_t"]


class Shader:
    def __init__(self, seed, wide=False):
        self.random = Random(seed)
        self.wide = wide  # 64-, 16- and 8-bit integers as well
        self.lines = []
        self.indent = 0
        self.names = 0
        self.scopes = [[]]  # of (name, type, is_writable)
        self.functions = []  # of (name, result, [(qualifier, type)])
        self.loops = 0  # around the statement
        self.breakable = []  # "loop" or "switch", innermost last
        self.result = None  # the type of the function
        self.budget = 0
        self.types = SCALARS + list(VECTORS) + (WIDE if wide else [])

    # Text.

    def put(self, text):
        self.lines.append("  " * self.indent + text)

    def name(self, stem):
        self.names += 1
        return f"{stem}{self.names}"

    def variables(self, type_, writable=False):
        return [n for scope in self.scopes for n, t, w in scope if t == type_ and (w or not writable)]

    # Expressions.

    def literal(self, type_):
        r = self.random
        if type_ == "bool":
            return r.pick(["true", "false"])
        if type_ == "float":
            return f"{r.below(16)}.0"
        if type_ == "uint":
            return f"{r.pick([0, 1, 2, 3, 4, 7, 31, 0x80000000, 0xffffffff, r.next()])}u"
        if type_ == "int":
            return str(r.pick([0, 1, 2, 3, -1, -7, 100, r.below(1 << 20)]))
        return f"{type_}({r.below(100)})"

    def leaf(self, type_):
        r = self.random
        names = self.variables(type_)
        if names and not r.one_in(4):
            return r.pick(names)
        if type_ == "uint" and r.one_in(2):
            return f"source[({self.leaf('uint')}) & {INPUTS - 1}u]"
        if type_ == "uint" and r.one_in(6):
            return r.pick(["state.a", "state.list[1]", "state.v.y", "table[state.a & 3u]"])
        if type_ == "int" and r.one_in(6):
            return "state.b"
        return self.literal(type_)

    def expression(self, type_, depth=2):
        r = self.random
        if depth <= 0 or r.one_in(5):
            return self.leaf(type_)
        if type_ in VECTORS:
            return self.vector(type_, depth)
        if r.one_in(8):
            return f"({self.expression('bool', depth - 1)} ? {self.expression(type_, depth - 1)} : " + (
                self.expression(type_, depth - 1) + ")"
            )
        callable_ = [f for f in self.functions if f[1] == type_]
        if callable_ and self.loops < 2 and self.budget > 0 and r.one_in(3):
            return self.call(r.pick(callable_), depth)
        return getattr(self, "make_" + type_, self.make_wide)(type_, depth)

    def vector(self, type_, depth):
        r = self.random
        element = VECTORS[type_]
        if r.one_in(3) or type_ == "bvec2":
            return f"{type_}({', '.join(self.expression(element, depth - 1) for _ in range(int(type_[-1])))})"
        a = self.leaf(type_)
        if type_ == "vec2" and r.one_in(3):
            return f"mod(mat2({', '.join(self.leaf('float') for _ in range(4))}) * {a}, 64.0)"
        if element == "float":
            return f"mod({a} {r.pick(['+', '*', '-'])} {self.leaf(type_)}, 64.0)"
        return f"({a} {r.pick(['+', '*', '-', '^', '&'])} {self.leaf(type_)})"

    def make_uint(self, _, depth):
        r = self.random
        a = self.expression("uint", depth - 1)
        b = self.expression("uint", depth - 1)
        return r.pick(
            [
                lambda: f"({a} {r.pick(['+', '-', '*', '&', '|', '^'])} {b})",
                lambda: f"({a} {r.pick(['<<', '>>'])} ({b} & 31u))",
                lambda: f"({a} {r.pick(['/', '%'])} ({b} | 1u))",
                lambda: f"~{a}",
                lambda: f"{r.pick(['min', 'max'])}({a}, state.list[{r.below(4)}])",
                lambda: f"bitfieldExtract({a} ^ state.a, 3, 5)",
                lambda: f"uint({self.expression(r.pick(['int', 'bool']), depth - 1)})",
                lambda: f"uint(int({self.expression('float', depth - 1)}))",
                lambda: f"{self.leaf('uvec2')}.{r.pick('xy')}",
                lambda: f"uint(bitCount({a} + state.a))",
            ]
        )()

    def make_int(self, _, depth):
        r = self.random
        a = self.expression("int", depth - 1)
        b = self.expression("int", depth - 1)
        return r.pick(
            [
                lambda: f"({a} {r.pick(['+', '-', '*', '&', '|', '^'])} {b})",
                lambda: f"({a} {r.pick(['<<', '>>'])} ({b} & 31))",
                lambda: f"(({a} & 0xffff) {r.pick(['/', '%'])} (({b} & 7) + 1))",
                lambda: f"(-({a}))",
                lambda: f"{r.pick(['min', 'max'])}({a}, state.b)",
                lambda: f"int({self.expression(r.pick(['uint', 'bool', 'float']), depth - 1)})",
                lambda: f"{self.leaf('ivec3')}[({self.leaf('uint')} ^ state.a) % 3u]",
            ]
        )()

    def make_float(self, _, depth):
        r = self.random
        a = self.leaf("float")
        b = self.leaf("float")
        return r.pick(
            [
                lambda: f"mod({a} {r.pick(['+', '-', '*'])} {b}, 64.0)",
                lambda: f"mod({a} * {b} + {self.leaf('float')}, 64.0)",
                lambda: f"{r.pick(['min', 'max'])}({a}, {b})",
                lambda: f"float({self.expression('uint', depth - 1)} & 63u)",
                lambda: f"mod(dot({self.leaf('vec2')}, {self.leaf('vec2')}), 64.0)",
                lambda: f"{self.leaf('vec4')}.{r.pick('xyzw')}",
            ]
        )()

    def make_bool(self, _, depth):
        r = self.random
        kind = r.pick(["uint", "int", "float"] + (WIDE if self.wide else []))
        a = lambda t: self.expression(t, depth - 1)  # noqa: E731
        return r.pick(
            [
                lambda: f"({a(kind)} {r.pick(['<', '<=', '>', '>=', '==', '!='])} {a(kind)})",
                lambda: f"({a('uint')} {r.pick(['<', '==', '!='])} {self.literal('uint')})",
                lambda: f"({a('bool')} {r.pick(['&&', '||', '^^', '=='])} {a('bool')})",
                lambda: f"!{a('bool')}",
                lambda: f"{r.pick(['all', 'any'])}({self.leaf('bvec2')})",
                lambda: f"({self.leaf('uvec2')} == state.v)",
            ]
        )()

    def make_wide(self, type_, depth):
        r = self.random
        a = self.expression(type_, depth - 1)
        return r.pick(
            [
                lambda: f"({a} {r.pick(['+', '-', '*', '&', '|', '^'])} {self.expression(type_, depth - 1)})",
                lambda: f"{type_}({self.expression(r.pick(['uint', 'int'] + WIDE), depth - 1)})",
            ]
        )()

    def call(self, function, depth):
        name, _, parameters = function
        self.budget -= 1
        arguments = []
        for qualifier, type_ in parameters:
            targets = self.variables(type_, writable=True)
            if qualifier == "in":
                arguments.append(self.expression(type_, depth - 1) if type_ != "State" else "state")
            elif targets:
                arguments.append(self.random.pick(targets))
            else:
                return self.without_call(function)
        # Two names for one variable make the order of writes matter.
        if len(set(arguments)) != len(arguments):
            return self.without_call(function)
        return f"{name}({', '.join(arguments)})"

    def without_call(self, function):
        return "" if function[1] == "void" else self.leaf(function[1])

    # Statements.

    def declare(self, type_=None, value=None):
        type_ = type_ or self.random.pick(self.types)
        name = self.name("x")
        self.put(f"{type_} {name} = {value or self.expression(type_)};")
        self.scopes[-1].append((name, type_, True))

    def assign(self):
        r = self.random
        if r.one_in(4):
            index = f"[{self.leaf('uint')} & 3u]"
            self.put(
                r.pick(
                    [
                        f"state.a = {self.expression('uint')};",
                        f"state.list{index} {r.pick(['=', '+=', '^='])} {self.expression('uint')};",
                        f"state.v = {self.expression('uvec2')};",
                        f"state.b -= {self.expression('int')};",
                        f"if ({self.expression('bool')}) state = State({self.leaf('uint')}, {self.leaf('int')}, "
                        f"uint[4](1u, {self.leaf('uint')}, 2u, 3u), {self.leaf('uvec2')});",
                    ]
                )
            )
            return
        type_ = r.pick(self.types)
        targets = self.variables(type_, writable=True)
        if not targets:
            self.declare(type_)
        elif type_ in ("uint", "int") and r.one_in(3):
            self.put(f"{r.pick(targets)} {r.pick(['+=', '-=', '^=', '*='])} {self.expression(type_)};")
        elif type_ in VECTORS and type_ != "bvec2" and r.one_in(3):
            self.put(f"{r.pick(targets)}.{r.pick('xy')} = {self.expression(VECTORS[type_])};")
        else:
            self.put(f"{r.pick(targets)} = {self.expression(type_)};")

    def block(self, count):
        self.indent += 1
        self.scopes.append([])
        for _ in range(count):
            self.statement()
        self.scopes.pop()
        self.indent -= 1

    def leave(self):
        r = self.random
        ways = []
        if self.breakable:
            ways.append("break;")
        if "loop" in self.breakable:
            ways.append("continue;")
        if self.result is not None:
            ways.append("return;" if self.result == "void" else f"return {self.expression(self.result, 1)};")
        if ways:
            self.put(r.pick(ways))

    def statement(self):
        r = self.random
        self.budget -= 1
        if self.budget <= 0 or len(self.scopes) > 6:
            self.assign()
            return
        kind = r.below(16)
        if kind < 4:
            self.assign()
        elif kind < 6:
            self.declare()
        elif kind < 10:
            self.selection()
        elif kind < 12:
            self.switch()
        elif kind < 15:
            self.loop() if self.loops < 2 else self.assign()
        elif r.one_in(3):
            self.leave()
        else:
            self.assign()

    def selection(self):
        r = self.random
        self.put(f"if ({self.expression('bool')}) {{")
        if r.one_in(3):
            self.block(r.below(2))
            self.indent += 1
            self.leave()
            self.indent -= 1
        else:
            self.block(1 + r.below(3))
        if r.one_in(2):
            self.put("} else {")
            self.block(r.below(3))
            if r.one_in(4):
                self.indent += 1
                self.leave()
                self.indent -= 1
        self.put("}")

    def switch(self):
        r = self.random
        type_ = r.pick(["uint", "int"])
        mask = r.pick(["", " & 3" + ("u" if type_ == "uint" else "")])
        self.put(f"switch ({self.expression(type_)}{mask}) {{")
        self.breakable.append("switch")
        labels = list(range(2 + r.below(4)))
        default = r.below(len(labels) + 2)
        for label in labels:
            self.put(f"case {label}{'u' if type_ == 'uint' else ''}:")
            if label == default:
                self.put("default:")
            if r.one_in(5) and label != labels[-1]:
                continue
            self.block(1 + r.below(2))
            if not r.one_in(3):
                self.indent += 1
                if r.one_in(4):
                    self.leave()
                else:
                    self.put("break;")
                self.indent -= 1
        if default == len(labels):
            self.put("default:")
            self.block(1)
        self.breakable.pop()
        self.put("}")

    def loop(self):
        r = self.random
        counter = self.name("i")
        limit = r.pick(["1u", "2u", "3u", "4u", f"({self.leaf('uint')} & 3u)"])
        self.loops += 1
        self.breakable.append("loop")
        kind = r.below(5)
        if kind < 2:
            self.put(f"for (uint {counter} = 0u; {counter} < {limit}; ++{counter}) {{")
            self.scopes.append([(counter, "uint", False)])
            self.block(1 + r.below(3))
            self.scopes.pop()
            self.put("}")
        else:
            self.put(f"uint {counter} = 0u;")
            self.scopes[-1].append((counter, "uint", False))
            guard = f"{counter}++ < {limit}"
            if kind == 2:
                self.put(f"while ({guard} && {self.expression('bool')}) {{")
                self.block(1 + r.below(3))
                self.put("}")
            elif kind == 3:
                self.put("do {")
                self.block(1 + r.below(3))
                self.put(f"}} while ({guard} && {self.expression('bool')});")
            else:
                self.put("for (;;) {")
                self.put(f"  if ({counter}++ >= {limit}) {r.pick(['break', 'break', '{ ' + self.way_back() + ' }'])};")
                self.block(1 + r.below(3))
                if r.one_in(3):
                    self.put("  break;")
                self.put("}")
        self.breakable.pop()
        self.loops -= 1

    def way_back(self):
        if self.result is None:
            return "break;"
        return "return;" if self.result == "void" else f"return {self.literal(self.result)};"

    # Declarations.

    def constants(self):
        r = self.random
        spec = []
        for i in range(3 + r.below(5)):
            type_ = r.pick(["uint", "uint", "int", "bool", "float"] + (WIDE if self.wide else []))
            name = self.name("k")
            value = {"bool": "true", "float": "3.0"}.get(type_, f"{type_}({r.below(4)})")
            self.put(f"layout(constant_id = {i}) const {type_} {name} = {value};")
            spec.append((name, type_))
        self.scopes[0] = [(n, t, False) for n, t in spec if t in ("uint", "int", "bool")]
        # glslang 12 writes invalid modules where conversions and built-in functions apply to constants alone.
        self.copied = [(n, t) for n, t in spec if t not in ("uint", "int", "bool")]
        self.put(f"layout(constant_id = 80) const uint length = {1 + r.below(4)}u;")
        self.scopes[0].append(("length", "uint", False))
        for _ in range(r.below(5)):
            type_ = r.pick(["uint", "int", "bool", "uvec2"])
            name = self.name("d")
            self.put(f"const {type_} {name} = {self.constant(type_)};")
            self.scopes[0].append((name, type_, False))

    def copy_constants(self):
        for name, type_ in self.copied:
            if type_ in self.types:
                self.declare(type_, name)

    def constant(self, type_):
        """An expression that glslang makes an OpSpecConstantOp of."""
        r = self.random
        pick = lambda t: r.pick(self.variables(t) + [self.literal(t)])  # noqa: E731
        if type_ == "uvec2":
            return f"uvec2({pick('uint')}, {pick('uint')}) {r.pick(['+', '*', '&'])} {pick('uint')}"
        if type_ == "bool":
            return r.pick(
                [
                    f"{pick('uint')} {r.pick(['<', '>=', '==', '!='])} {pick('uint')}",
                    f"{pick('bool')} {r.pick(['&&', '||', '=='])} {pick('bool')}",
                    f"!{pick('bool')}",
                    f"{pick('int')} {r.pick(['<', '>'])} {pick('int')}",
                ]
            )
        if type_ == "int":
            return r.pick(
                [
                    f"{pick('int')} {r.pick(['+', '-', '*', '^'])} {pick('int')}",
                    f"({pick('int')} & 255) {r.pick(['/', '%'])} 3",
                    f"-({pick('int')})",
                    f"{pick('bool')} ? {pick('int')} : {pick('int')}",
                    f"int({pick('uint')}) >> 2",
                ]
            )
        return r.pick(
            [
                f"{pick('uint')} {r.pick(['+', '-', '*', '|', '&'])} {pick('uint')}",
                f"{pick('uint')} {r.pick(['/', '%'])} 3u",
                f"({pick('uint')} << 3) >> 1",
                f"{pick('bool')} ? {pick('uint')} : 5u",
                f"uint({pick('int')})",
                f"{pick('uvec2')}.{r.pick('xy')}",
            ]
        )

    def function(self):
        r = self.random
        result = r.pick(["uint", "uint", "int", "bool", "float", "void", "uvec2"])
        parameters = []
        for _ in range(r.below(4)):
            type_ = r.pick(SCALARS + ["uvec2", "State", "vec4"])
            parameters.append((r.pick(["in", "in", "inout", "out"]) if type_ != "State" else "in", type_))
        name = self.name("f")
        scope = []
        for qualifier, type_ in parameters:
            scope.append((self.name("p"), type_, True))
        text = ", ".join(f"{q} {t} {n[0]}" for (q, t), n in zip(parameters, scope))
        self.put(f"{result} {name}({text}) {{")
        self.indent += 1
        for (qualifier, type_), (n, _, _) in zip(parameters, scope):
            if qualifier == "out":
                self.put(f"{n} = {self.literal(type_) if type_ in SCALARS else type_ + '(1)'};")
        if not any(t == "State" for _, t, _ in scope):
            self.put("State state = initial;")
        else:
            self.put(f"State state = {next(n for n, t, _ in scope if t == 'State')};")
        self.scopes.append(scope)
        self.copy_constants()
        self.indent -= 1
        self.result = result
        self.budget = 12
        self.block(2 + r.below(4))
        self.result = None
        if result != "void":
            self.put(f"  return {self.expression(result)};")
        self.scopes.pop()
        self.put("}")
        self.functions.append((name, result, parameters))

    def text(self):
        r = self.random
        self.put("#version 460")
        if self.wide:
            for kind in ("int64", "int16", "int8"):
                self.put(f"#extension GL_EXT_shader_explicit_arithmetic_types_{kind} : require")
        self.put(r.pick(["layout(local_size_x = 8) in;", "layout(local_size_x = 8, local_size_x_id = 90) in;"]))
        self.constants()
        self.put("struct State { uint a; int b; uint list[4]; uvec2 v; };")
        self.put(f"layout(std430, binding = 0) readonly buffer Source {{ uint source[{INPUTS}]; }};")
        self.put("layout(std430, binding = 1) buffer Target { uint target[]; };")
        self.put("layout(std430, binding = 2) buffer Extra { State extra; uint counts[4]; };")
        self.put("const uint table[4] = uint[](3u, 1u, 4u, 15u);")
        self.put("State initial = State(1u, -2, uint[](1u, 2u, 3u, 4u), uvec2(5u, 6u));")
        self.put("shared uint row[8];")
        self.put("shared uint sized[length];")
        state = ("state", None, False)
        for _ in range(1 + r.below(4)):
            self.scopes.append([state])
            self.function()
            self.scopes.pop()
        self.put("void main() {")
        self.indent += 1
        self.put("uint lane = gl_LocalInvocationID.x;")
        self.put("uint index = gl_GlobalInvocationID.x;")
        self.put("State state = extra;")
        self.scopes.append([("lane", "uint", False), ("index", "uint", False)])
        if r.one_in(2):
            self.put(f"row[lane] = {self.expression('uint')};")
            self.put("if (lane == 0u) for (uint i = 0u; i < length; ++i) sized[i] = i * 3u;")
            self.put("barrier();")
            self.declare("uint", "row[(lane + 1u) % gl_WorkGroupSize.x] + sized[index % length]")
        self.copy_constants()
        for type_ in SCALARS:
            self.declare(type_)
        self.indent -= 1
        self.budget = 40
        self.result = "void" if r.one_in(3) else None
        self.scopes.append([])
        for _ in range(4 + r.below(5)):
            self.indent += 1
            self.statement()
            self.indent -= 1
        self.indent += 1
        for function in self.functions:
            self.budget = 3
            call = self.call(function, 2)
            if call and function[1] == "void":
                self.put(call + ";")
        if r.one_in(3):
            self.put(f"atomicAdd(counts[{self.leaf('uint')} & 3u], {self.leaf('uint')});")
        self.budget = 8
        values = [self.expression("uint"), f"uint({self.expression('int')})", f"uint({self.expression('bool')})"]
        values += [f"uint(int({self.expression('float')}))", "state.a ^ uint(state.b)", "state.list[0] + state.list[2]"]
        values += [" ^ ".join(self.variables("uint", True) + ["7u"]), "state.v.x"]
        for i, value in enumerate(values[:OUTPUTS]):
            self.put(f"target[index * {OUTPUTS}u + {i}u] = {value};")
        self.scopes.pop()
        self.indent -= 1
        self.put("}")
        return "\n".join(self.lines) + "\n"


def shader(seed, wide=False):
    return Shader(seed, wide).text()
