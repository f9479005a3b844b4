"""Rewrites Python functions so that decisions and loops by tensors can be recorded.

Only the source of a function is changed, never its meaning for values of Python: `if`, `while`, `for`, `and`, `or`,
`not`, comparisons, conditional expressions, assertions and calls become calls of _control.py, which run Python's own
statement unless a tensor of a trace decides. The code keeps its file and lines.
"""
import ast
import builtins
import contextlib
import dataclasses
import functools
import inspect
import textwrap
import types

from . import _control
from ._sources import is_rewritten
from ._syntax import (
    CONTROL,
    Effects,
    Jumps,
    Unsupported,
    assign,
    constant,
    define,
    helper_call,
    is_read,
    lambda_node,
    name_node,
)

# The code of functions that contextlib.contextmanager makes.
_CONTEXT_MANAGER = contextlib.contextmanager(len).__code__


# --- statements and expressions become calls ---


class _Calls(ast.NodeTransformer):
    def __init__(self, local, globals_, first_argument):
        self.local, self.globals, self.first_argument = local, globals_, first_argument
        self.count = 0

    # expressions

    def visit_BoolOp(self, node):
        if any(isinstance(each, ast.NamedExpr) for each in ast.walk(node)):
            raise Unsupported
        self.generic_visit(node)
        return helper_call("and_" if isinstance(node.op, ast.And) else "or_", *(lambda_node(each) for each in node.values))

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return helper_call("not_", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node):
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        rest = [ast.Tuple(elts=[constant(type(op).__name__), lambda_node(right)], ctx=ast.Load())
                for op, right in zip(node.ops, node.comparators)]
        return helper_call("compare", node.left, *rest)

    def visit_IfExp(self, node):
        if any(isinstance(each, ast.NamedExpr) for each in ast.walk(node)):
            raise Unsupported
        self.generic_visit(node)
        return helper_call("if_expression", node.test, lambda_node(node.body), lambda_node(node.orelse))

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            if self.first_argument is None:
                raise Unsupported
            node.args = [name_node("__class__"), name_node(self.first_argument)]
            return node
        if is_read(node):
            return node
        self.generic_visit(node)
        function = ast.Attribute(value=name_node(CONTROL), attr="call", ctx=ast.Load())
        node.func = ast.Call(func=function, args=[node.func], keywords=[])
        return node

    def visit_Attribute(self, node):
        if isinstance(node.value, ast.Name) and node.value.id == CONTROL:
            return node
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            return helper_call("attribute", node.value, constant(node.attr))
        return ast.Attribute(value=helper_call("slot", node.value, constant(node.attr)), attr="value", ctx=node.ctx)

    def visit_Subscript(self, node):
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            node.value = helper_call("container", node.value)
        return node

    def visit_AugAssign(self, node):
        written = name_node(node.target.id) if isinstance(node.target, ast.Name) else None
        self.generic_visit(node)
        if written is None:
            return node
        check = ast.Expr(value=helper_call("container", self.visit(ast.copy_location(written, node.target))))
        return [ast.copy_location(check, node), node]

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load) and node.id not in self.local and not node.id.startswith("_jit_"):
            return helper_call("global_name", node, constant(node.id))
        return node

    def visit_Lambda(self, node):
        before = self.local
        self.local = before | set(_parameters(node.args))
        self.generic_visit(node)
        self.local = before
        return node

    def _comprehension(self, node):
        before = self.local
        self.local = before | {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        self.generic_visit(node)
        self.local = before
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_FunctionDef(self, node):
        return node  # rewritten when it is called

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_Yield(self, node):
        raise Unsupported

    visit_YieldFrom = visit_Await = visit_AsyncFor = visit_AsyncWith = visit_Yield

    def visit_Delete(self, node):
        if any(isinstance(each, ast.Name) for each in node.targets):
            raise Unsupported
        return self.generic_visit(node)

    # statements

    def visit_Assert(self, node):
        self.generic_visit(node)
        message = ast.Tuple(elts=[node.msg] if node.msg else [], ctx=ast.Load())
        return ast.Expr(value=helper_call("assert_", node.test, lambda_node(message)))

    def _function(self, name, names, body, parameter=None):
        own = [each for each in names if each not in self.globals]
        shared = [each for each in names if each in self.globals]
        declared = ([ast.Nonlocal(names=own)] if own else []) + ([ast.Global(names=shared)] if shared else [])
        return define(name, [parameter] if parameter else [], declared + (body or [ast.Pass()]))

    def _state(self, names):
        """The functions that get and set the names, and what comes with them."""
        self.count += 1
        put, values = f"_jit_put_{self.count}", "_jit_values"
        load = ast.List(elts=[name_node(each) for each in names], ctx=ast.Load())
        store = [ast.Assign(targets=[ast.List(elts=[name_node(each, True) for each in names], ctx=ast.Store())],
                            value=name_node(values))] if names else []
        definition = self._function(put, names, store, values)
        return definition, [lambda_node(load), name_node(put), ast.Tuple(elts=[constant(each) for each in names], ctx=ast.Load())]

    def _effects(self, statements):
        effects = Effects(statements, self.local)
        attributes = ast.Tuple(elts=[constant(each) for each in effects.attributes], ctx=ast.Load())
        return effects.names, attributes

    def _statements(self, statements):
        out = []
        for each in statements:
            found = self.visit(each)
            out.extend(found if isinstance(found, list) else [found])
        return out

    def visit_If(self, node):
        names, attributes = self._effects(node.body + node.orelse)
        test = self.visit(node.test)
        put, state = self._state(names)
        number = self.count
        ways = [self._function(f"_jit_{way}_{number}", names, self._statements(body))
                for way, body in (("then", node.body), ("else", node.orelse))]
        call = helper_call("if_", test, *(name_node(way.name) for way in ways), *state, attributes)
        return [put, *ways, ast.Expr(value=call)]

    def visit_While(self, node):
        stops = node.jit_stops
        names, attributes = self._effects([*node.body, ast.Expr(value=node.test)])
        test = node.test
        if stops:
            test = ast.BoolOp(op=ast.And(), values=[*(ast.UnaryOp(op=ast.Not(), operand=name_node(s)) for s in stops), test])
        put, state = self._state(names)
        number = self.count
        condition = self._function(f"_jit_test_{number}", names, [ast.Return(value=self.visit(test))])
        body = self._function(f"_jit_body_{number}", names, self._statements(node.body))
        call = helper_call("while_", name_node(condition.name), name_node(body.name), *state, attributes)
        return [put, condition, body, ast.Expr(value=call)]

    def visit_For(self, node):
        stops = node.jit_stops
        item = "_jit_item"
        take = ast.Assign(targets=[node.target], value=name_node(item))
        names, attributes = self._effects([take, *node.body])
        source = node.iter
        is_range = isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id == "range" \
            and not source.keywords and not any(isinstance(each, ast.Starred) for each in source.args)
        if is_range:
            source = helper_call("range_", name_node("range"), *(self.visit(each) for each in source.args))
        else:
            source = self.visit(source)
        put, state = self._state(names)
        number = self.count
        body = self._function(f"_jit_body_{number}", names, self._statements([take, *node.body]), item)
        stop = constant(False) if not stops else name_node(stops[0]) if len(stops) == 1 else self.visit(
            ast.BoolOp(op=ast.Or(), values=[name_node(each) for each in stops]))
        call = helper_call("for_", source, name_node(body.name), lambda_node(stop), *state, attributes)
        return [put, body, ast.Expr(value=call)]


class _Reads(_Calls):
    """Only calls, attributes and other names: for functions whose statements are left, such as generators."""

    def _left(self, node):
        return self.generic_visit(node)

    visit_BoolOp = visit_UnaryOp = visit_Compare = visit_IfExp = visit_Assert = _left
    visit_If = visit_While = visit_For = visit_Yield = visit_YieldFrom = visit_Delete = _left


class _Loads(ast.NodeTransformer):
    """Reads of names that may have no value are checked, but for those that only hand state on."""

    def __init__(self, names):
        self.names = names

    def visit_Name(self, node):
        return helper_call("read", node) if isinstance(node.ctx, ast.Load) and node.id in self.names else node

    def visit_FunctionDef(self, node):
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef


def _parameters(arguments):
    out = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return out + [each.arg for each in (arguments.vararg, arguments.kwarg) if each]


def _is_private(node):
    """Whether the compiler changes a name for its class, as that of self.__own."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.startswith("__") and not name.endswith("__")


def _definition(function):
    """The source of a function as the definition of one, with the lines that it has."""
    lines, first = inspect.getsourcelines(function.__code__)  # not of what it wraps
    text = textwrap.dedent("".join(lines))
    if function.__name__ == "<lambda>":
        indent = len(lines[0]) - len(text.partition("\n")[0] + "\n")
        return _lambda_definition(function.__code__, text, first, indent)
    tree = ast.parse(text)
    if not isinstance(tree.body[0], ast.FunctionDef):
        raise Unsupported  # a coroutine
    ast.increment_lineno(tree, first - 1)
    return tree.body[0]


def _lambda_definition(code, text, first, indent):
    """A lambda as a definition. Its source may be a part of a statement, of which a lambda of the same place is sought."""
    for end in range(len(text), 0, -1):
        try:
            tree = ast.parse(text[:end].rstrip().rstrip(","))
            break
        except SyntaxError:
            continue
    else:
        raise Unsupported
    ast.increment_lineno(tree, first - 1)
    places = {(line, column - indent) for line, _, column, _ in code.co_positions() if line and column is not None}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)
             and _parameters(node.args) == list(code.co_varnames[:len(_parameters(node.args))])
             and any((each.lineno, each.col_offset) in places for each in ast.walk(node.body) if hasattr(each, "lineno"))]
    # Of one lambda in another, both have places of the inner one.
    found = [node for node in found if (node.body.lineno, node.body.col_offset) in places] or found
    if len(found) != 1:
        raise Unsupported
    out = define("_jit_lambda", [], [ast.copy_location(ast.Return(value=found[0].body), found[0].body)])
    out.args = found[0].args
    return ast.copy_location(out, found[0])


def _rewritten(function, decisions=True):
    """The code of the function with calls in place of decisions, reads and calls, or only of reads and calls."""
    definition = _definition(function)
    if any(_is_private(node) or (decisions and isinstance(node, ast.Match)) for node in ast.walk(definition)):
        raise Unsupported
    definition.decorator_list = []
    code = function.__code__
    parameters = _parameters(definition.args)
    globals_ = {name for node in ast.walk(definition) if isinstance(node, ast.Global) for name in node.names}
    outer = {name for node in ast.walk(definition) if isinstance(node, ast.Nonlocal) for name in node.names}
    declarations = [node for node in definition.body if isinstance(node, (ast.Global, ast.Nonlocal))]
    body = [node for node in definition.body if not isinstance(node, (ast.Global, ast.Nonlocal))]
    first_argument = parameters[0] if parameters else None
    stored = {*code.co_varnames, *code.co_cellvars, *parameters}
    if decisions:
        body = Jumps(body).function(body)
        stored |= {node.id for each in body for node in ast.walk(each)
                   if isinstance(node, ast.Name) and node.id.startswith("_jit_") and node.id != CONTROL}
        unset = sorted(stored - set(parameters) - globals_ - outer - set(code.co_freevars))
        loads = _Loads(frozenset(name for name in unset if not name.startswith("_jit_")))
        body = [loads.visit(each) for each in body]
    local = stored | globals_ | set(code.co_freevars)
    body = (_Calls if decisions else _Reads)(local, globals_, first_argument)._statements(body)
    if decisions:
        # Names of inner functions can only be shared if they exist.
        body = [assign(name, helper_call("Undefined", constant(name))) for name in unset] + body
    definition.body = declarations + body
    # Its own name means what it means outside.
    definition.name = "_jit_function"
    free = [*code.co_freevars, CONTROL]
    if "__class__" not in free and any(isinstance(n, ast.Name) and n.id == "__class__" for n in ast.walk(definition)):
        raise Unsupported
    factory = define("_jit_factory", free, [definition, ast.Return(value=name_node(definition.name))])
    module = ast.Module(body=[factory], type_ignores=[])
    ast.fix_missing_locations(module)
    compiled = compile(module, code.co_filename, "exec")
    inner = next(each for each in compiled.co_consts if isinstance(each, types.CodeType))
    found = next(each for each in inner.co_consts if isinstance(each, types.CodeType) and each.co_name == definition.name)
    return found.replace(co_name=code.co_name, co_qualname=code.co_qualname)


_codes = {}


def _code_of(function):
    """The rewritten code; None for functions without source, or with what is left as it is."""
    code, recorder = function.__code__, _control.recorder()
    key = (code, recorder is None)
    if key not in _codes:
        _codes[key] = None
        for decisions in (True,) if recorder is None else (True, False):
            try:
                _codes[key] = _rewritten(function, decisions)
                break
            except (OSError, TypeError, SyntaxError, IndexError, StopIteration, Unsupported):
                continue
    return _codes[key]


def _converted(function):
    code, recorder = function.__code__, _control.recorder()
    with recorder.paused() if recorder else contextlib.nullcontext():
        rewritten = _code_of(function)
    if rewritten is None:
        return function
    if recorder:
        recorder.allow(rewritten)
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    cells[CONTROL] = types.CellType(_control)
    closure = tuple(cells[name] for name in rewritten.co_freevars)
    out = types.FunctionType(rewritten, function.__globals__, function.__name__, function.__defaults__, closure)
    out.__kwdefaults__ = function.__kwdefaults__
    return out


def _is_left(function):
    """Functions of Python's library, of installed packages and of this one are called as they are."""
    return getattr(function, "_jit_left", False) or not is_rewritten(function.__code__.co_filename)


def _call_layer(layer, forward):
    """A call of a layer: its hooks, which are rewritten, too, and `forward`."""
    before, after = (list(layer.__dict__.get(name, {}).values()) for name in ("_pre_hooks", "_post_hooks"))
    if not before and not after:
        return forward

    def run(*inputs, **named):
        for hook in before:
            changed = call(hook)(layer, inputs)
            if changed is not None:
                inputs = changed if isinstance(changed, tuple) else (changed,)
        outputs = forward(*inputs, **named)
        for hook in after:
            changed = call(hook)(layer, inputs, outputs)
            outputs = outputs if changed is None else changed
        return outputs

    return run


def _constructor(kind):
    """A class of the user, whose `__init__` is rewritten."""
    initialize = kind.__init__
    if type(kind) is not type or kind.__new__ is not object.__new__ or not isinstance(initialize, types.FunctionType) \
            or dataclasses.is_dataclass(kind) or _is_left(initialize):
        return kind

    def construct(*arguments, **named):
        out = object.__new__(kind)
        call(initialize)(out, *arguments, **named)
        return out

    return construct


def call(function):
    """What is called in place of a function: it itself, or the rewritten one."""
    recorder = _control.recorder()
    if isinstance(function, types.FunctionType):
        if recorder and function.__code__ is _CONTEXT_MANAGER:
            return contextlib.contextmanager(call(function.__wrapped__))
        if _is_left(function):
            return function
        if recorder:
            recorder.function(function)
            if getattr(function, "_jit_break", False):
                return function
        return _converted(function)
    if isinstance(function, types.MethodType):
        inner = call(function.__func__)
        return function if inner is function.__func__ else types.MethodType(inner, function.__self__)
    if function is builtins.print:
        return recorder.replacement(print) if recorder else _control.print_
    if isinstance(function, functools.partial):
        return functools.partial(call(function.func), *function.args, **function.keywords)
    if isinstance(function, type):
        return _constructor(function) if recorder else function
    if isinstance(function, types.BuiltinFunctionType):
        return recorder and recorder.replacement(function) or function
    if hasattr(type(function), "_jit_inner"):  # compiled by to_static: a part of what is traced
        return call(function._jit_inner)
    own = getattr(type(function), "__call__", None)
    if not isinstance(own, types.FunctionType):
        return function
    if own.__qualname__ == "Layer.__call__" and own.__module__.endswith("paddle_toolchain.nn.layer"):
        forward = call(function.__dict__.get("forward", types.MethodType(type(function).forward, function)))
        return _call_layer(function, forward)
    inner = call(own)
    return types.MethodType(inner, function)


_control.call = call
