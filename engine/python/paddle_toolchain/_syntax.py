"""The syntax of functions that _rewrite.py rewrites: what statements assign, and jumps as flags."""
import ast
import re

from ._control import VALUE

CONTROL = "_jit_control"
MUTATORS = frozenset(
    "add append clear discard extend insert pop popitem remove reverse setdefault sort update".split())


# --- small pieces of syntax ---


def name_node(name, store=False):
    return ast.Name(id=name, ctx=ast.Store() if store else ast.Load())


def helper_call(name, *arguments):
    function = ast.Attribute(value=name_node(CONTROL), attr=name, ctx=ast.Load())
    return ast.Call(func=function, args=list(arguments), keywords=[])


def lambda_node(body):
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(args=nothing, body=body)


def define(name, parameters, body):
    arguments = ast.arguments(posonlyargs=[], args=[ast.arg(arg=each) for each in parameters], kwonlyargs=[],
                              kw_defaults=[], defaults=[])
    out = ast.FunctionDef(name=name, args=arguments, body=body, decorator_list=[])
    out.type_params = []  # required since Python 3.12
    return out


def assign(name, value):
    return ast.Assign(targets=[name_node(name, True)], value=value)


def constant(value):
    return ast.Constant(value=value)


def is_read(node):
    """Whether this is the checked value of a name."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "read" \
        and isinstance(node.func.value, ast.Name) and node.func.value.id == CONTROL


# --- what a block does ---


class Effects(ast.NodeVisitor):
    """The names that statements assign or whose containers they change, and what cannot depend on a tensor."""

    def __init__(self, statements, local):
        self.local, self.names, self.attributes = local, [], []
        for statement in statements:
            self.visit(statement)

    def _note(self, name):
        if name in self.local:
            if name not in self.names:
                self.names.append(name)
        else:
            self._attribute(name_node(name))

    def _attribute(self, node):
        text = re.sub(CONTROL + r"\.read\((\w+)\)", r"\1", ast.unparse(node))
        self.attributes.append(f"{text} is assigned")

    def _written(self, node):
        """The base of what is written in place."""
        while isinstance(node, ast.Subscript) or is_read(node):
            node = node.args[0] if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Name):
            self._note(node.id)
        else:
            self._attribute(node)

    def visit_Name(self, node):
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            self._note(node.id)

    def visit_Attribute(self, node):
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            self._attribute(node)
        self.generic_visit(node)

    def visit_Subscript(self, node):
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            self._written(node)
        self.generic_visit(node)

    def visit_Call(self, node):
        if isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            self._written(node.func.value)
        self.generic_visit(node)

    def visit_Raise(self, node):
        self.attributes.append("an exception is raised")
        self.generic_visit(node)

    def visit_FunctionDef(self, node):
        self._note(node.name)

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_Lambda(self, node):
        pass

    def visit_ListComp(self, node):
        pass

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_ExceptHandler(self, node):
        if node.name:
            self._note(node.name)
        self.generic_visit(node)

    def visit_Import(self, node):
        for alias in node.names:
            self._note((alias.asname or alias.name).partition(".")[0])

    visit_ImportFrom = visit_Import


def contains(statements, kinds, through_loops=True):
    """Whether statements of these kinds occur, not in inner functions."""
    for statement in statements:
        if isinstance(statement, kinds):
            return True
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for field in ("body", "orelse", "finalbody"):
            inner = getattr(statement, field, [])
            in_loop = isinstance(statement, (ast.While, ast.For)) and field == "body"
            if isinstance(inner, list) and (through_loops or not in_loop) and contains(inner, kinds, through_loops):
                return True
        for handler in getattr(statement, "handlers", []):
            if contains(handler.body, kinds, through_loops):
                return True
    return False


def always_returns(statements):
    for statement in statements:
        if isinstance(statement, (ast.Return, ast.Raise)):
            return True
        if isinstance(statement, ast.If) and always_returns(statement.body) and always_returns(statement.orelse):
            return True
        if isinstance(statement, ast.With) and always_returns(statement.body):
            return True
        if isinstance(statement, ast.While) and isinstance(statement.test, ast.Constant) and statement.test.value \
                and not contains(statement.body, ast.Break, False):
            return True
        if isinstance(statement, (ast.For, ast.While)) and always_returns(statement.orelse) \
                and not contains(statement.body, ast.Break, False):
            return True
    return False


class Unsupported(Exception):
    pass


# --- jumps become flags ---


class Jumps:
    """`break`, `continue` and inner `return`s as assignments, with conditions around what they skip."""

    def __init__(self, statements):
        self.count = 0
        self.returns = any(contains([s], ast.Return) for s in statements if not isinstance(s, ast.Return))
        self.always = always_returns(statements)
        self.is_set, self.value = "_jit_returned", VALUE

    def function(self, statements):
        if not self.returns:
            return self.block(statements, None)
        before = [assign(self.is_set, constant(False)), assign(self.value, constant(None))]
        result = helper_call("returned", name_node(self.is_set), name_node(self.value), constant(self.always))
        return before + self.block(statements, None) + [ast.Return(value=result)]

    def _flags(self, statement, loop):
        """The flags that a statement may set."""
        out = []
        if self.returns and contains([statement], ast.Return):
            out.append(self.is_set)
        if loop:
            if contains([statement], ast.Break, False):
                out.append(loop[0])
            if contains([statement], ast.Continue, False):
                out.append(loop[1])
        return out

    def block(self, statements, loop):
        out = []
        for at, statement in enumerate(statements):
            flags = self._flags(statement, loop)
            out.extend(self.statement(statement, loop))
            if isinstance(statement, (ast.Return, ast.Break, ast.Continue)) and (self.returns or loop):
                break
            rest = statements[at + 1:]
            if flags and rest:
                test = name_node(flags[0]) if len(flags) == 1 else ast.BoolOp(op=ast.Or(), values=[name_node(f) for f in flags])
                skip = ast.If(test=ast.UnaryOp(op=ast.Not(), operand=test), body=self.block(rest, loop), orelse=[])
                out.append(ast.copy_location(skip, rest[0]))
                break
        return out

    def statement(self, node, loop):
        if isinstance(node, ast.Return) and self.returns:
            value = node.value if node.value is not None else constant(None)
            return [ast.copy_location(each, node) for each in
                    (assign(self.value, value), assign(self.is_set, constant(True)))]
        if isinstance(node, ast.Break):
            return [ast.copy_location(assign(loop[0], constant(True)), node)]
        if isinstance(node, ast.Continue):
            return [ast.copy_location(assign(loop[1], constant(True)), node)]
        if isinstance(node, (ast.While, ast.For)):
            return self.loop(node, loop)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return [node]
        for field in ("body", "orelse", "finalbody"):
            inner = getattr(node, field, None)
            if isinstance(inner, list) and inner and isinstance(inner[0], ast.stmt):
                setattr(node, field, self.block(inner, loop) or [ast.Pass()])
        for handler in getattr(node, "handlers", []):
            handler.body = self.block(handler.body, loop) or [ast.Pass()]
        return [node]

    def loop(self, node, outer):
        self.count += 1
        own = (f"_jit_break_{self.count}", f"_jit_continue_{self.count}")
        breaks, continues = contains(node.body, ast.Break, False), contains(node.body, ast.Continue, False)
        returns = self.returns and contains(node.body, ast.Return)
        body = self.block(node.body, own)
        if continues:
            body.insert(0, assign(own[1], constant(False)))
        stops = ([own[0]] if breaks else []) + ([self.is_set] if returns else [])
        orelse = self.block(node.orelse, outer)
        node.body, node.orelse, node.jit_stops = body or [ast.Pass()], [], stops
        out = [ast.copy_location(assign(own[0], constant(False)), node)] if breaks else []
        out.append(node)
        if orelse and stops:
            test = name_node(stops[0]) if len(stops) == 1 else ast.BoolOp(op=ast.Or(), values=[name_node(s) for s in stops])
            orelse = [ast.copy_location(ast.If(ast.UnaryOp(op=ast.Not(), operand=test), orelse, []), node)]
        return out + orelse
