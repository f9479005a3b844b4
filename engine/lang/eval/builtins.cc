// The closed list of built-in functions, on numbers, dims and lists. A call that holds a tensor
// means the operation of that name.
#include <array>
#include <cmath>

#include "lang/eval/evaluation.h"
#include "lang/eval/gain.h"

namespace paddle::lang {
namespace {

[[noreturn]] void reject_value(std::string_view callee, std::string_view expected,
                               const Value& value) {
  fail(ErrorCode::kConfig, callee, ": expected ", expected, ", found ", value.describe());
}

void need(std::string_view callee, const ValueList& values, size_t least, size_t most) {
  if (values.size() >= least && values.size() <= most) return;
  fail(ErrorCode::kConfig, callee, ": expected ",
       least == most ? str(least) : str(least, " to ", most), " arguments, found ", values.size());
}

int64_t integer_of(std::string_view callee, const Value& value) {
  if (const auto* dim = value.get<Dim>()) {
    fail(ErrorCode::kConfig, callee, ": the dim '", *dim, "' is not known while tracing (static(",
         *dim, ") traces once for each value)");
  }
  if (!value.is_integer()) reject_value(callee, "an integer", value);
  return value.integer();
}

double number_of(std::string_view callee, const Value& value) {
  if (const auto* dim = value.get<Dim>()) {
    fail(ErrorCode::kConfig, callee, ": the dim '", *dim, "' is not known while tracing (static(",
         *dim, ") traces once for each value)");
  }
  if (!value.is_number()) reject_value(callee, "a number", value);
  return value.number();
}

const ValueList& list_of(std::string_view callee, const Value& value) {
  const ValueList* items = value.items();
  if (!items) reject_value(callee, "a list", value);
  return *items;
}

Value range(const ValueList& args) {
  need("range", args, 1, 3);
  const int64_t start = args.size() > 1 ? integer_of("range", args[0]) : 0;
  const int64_t stop = integer_of("range", args[args.size() > 1 ? 1 : 0]);
  const int64_t stride = args.size() > 2 ? integer_of("range", args[2]) : 1;
  if (stride == 0) fail(ErrorCode::kConfig, "range: the step is 0");
  ValueList out;
  for (int64_t i = start; stride > 0 ? i < stop : i > stop;) {
    if (out.size() >= kMaxListItems) fail(ErrorCode::kConfig, "range: more than a million numbers");
    out.emplace_back(i);
    if (__builtin_add_overflow(i, stride, &i)) break;
  }
  return Value::list(std::move(out));
}

Value enumerate(const ValueList& args) {
  need("enumerate", args, 1, 2);
  int64_t i = args.size() > 1 ? integer_of("enumerate", args[1]) : 0;
  ValueList out;
  for (const Value& item : list_of("enumerate", args[0])) {
    out.push_back(Value::tuple({Value(i), item}));
    if (__builtin_add_overflow(i, int64_t{1}, &i) && out.size() < args[0].items()->size())
      fail(ErrorCode::kConfig, "enumerate: the numbers do not fit in 64 bits");
  }
  return Value::list(std::move(out));
}

Value zip(const ValueList& args) {
  if (args.empty()) fail(ErrorCode::kConfig, "zip needs a list");
  size_t length = SIZE_MAX;
  for (const Value& arg : args) length = std::min(length, list_of("zip", arg).size());
  ValueList out;
  for (size_t i = 0; i < length; ++i) {
    ValueList row;
    for (const Value& arg : args) row.push_back((*arg.items())[i]);
    out.push_back(Value::tuple(std::move(row)));
  }
  return Value::list(std::move(out));
}

Value extremum(const std::string& name, const ValueList& args) {
  const ValueList& values = args.size() == 1 ? list_of(name, args[0]) : args;
  if (values.empty()) fail(ErrorCode::kConfig, name, " of nothing");
  Value best = values[0];
  for (const Value& value : values) {
    if (best.is_dim() || value.is_dim()) {
      if (!(value.is_integer() || value.is_dim()) || !(best.is_integer() || best.is_dim())) {
        reject_value(name, "integers with a dim", value.is_dim() ? best : value);
      }
      const Dim a = best.is_dim() ? *best.get<Dim>() : Dim(best.integer());
      const Dim b = value.is_dim() ? *value.get<Dim>() : Dim(value.integer());
      best = Value(name == "max" ? maximum(a, b) : minimum(a, b));
    } else {
      const double a = number_of(name, best), b = number_of(name, value);
      if (name == "max" ? b > a : b < a) best = value;
    }
  }
  return best;
}

int64_t to_integer(std::string_view callee, double value) {
  if (!(std::abs(value) < 9.2e18))
    fail(ErrorCode::kConfig, callee, ": ", value, " does not fit in 64 bits");
  return static_cast<int64_t>(value);
}

/// Half to even, as Python rounds.
Value round_number(const ValueList& args) {
  need("round", args, 1, 2);
  if (args[0].is_integer()) return args[0];
  const double x = number_of("round", args[0]);
  if (args.size() == 2) {
    const int64_t digits = integer_of("round", args[1]);
    if (std::abs(digits) > 300) return x;
    const double scale = std::pow(10.0, static_cast<double>(digits));
    return std::nearbyint(x * scale) / scale;
  }
  return to_integer("round", std::nearbyint(x));
}

Value absolute(const Value& value) {
  if (const auto* dim = value.get<Dim>()) {
    if (dim->lower_bound().value_or(-1) >= 0) return value;
    fail(ErrorCode::kConfig, "abs: the sign of ", *dim, " depends on the input");
  }
  if (value.is_integer()) {
    if (value.integer() == INT64_MIN)
      fail(ErrorCode::kConfig, "abs: the result does not fit in 64 bits");
    return std::abs(value.integer());
  }
  return std::abs(number_of("abs", value));
}

Value convert(const std::string& name, const Value& value) {
  if (name == "bool") return truth(value);
  if (name == "int") {
    if (value.is_dim()) return value;
    if (value.is_integer()) return value.integer();
    return to_integer(name, number_of(name, value));
  }
  return number_of(name, value);
}

Value real_function(const std::string& name, double x) {
  if (name == "exp") return std::exp(x);
  if (name == "log") {
    if (!(x > 0)) fail(ErrorCode::kConfig, "log of ", x);
    return std::log(x);
  }
  if (name == "sqrt") {
    if (!(x >= 0)) fail(ErrorCode::kConfig, "sqrt of ", x);
    return std::sqrt(x);
  }
  return to_integer(name, name == "floor" ? std::floor(x) : std::ceil(x));
}

/// The DType that a name or tensor gives.
DType dtype_of(std::string_view callee, const Value& value) {
  if (value.is_tensor()) return value.tensor().dtype();
  const auto* name = value.get<std::string>();
  if (!name) reject_value(callee, "the name of a dtype", value);
  if (const auto dtype = parse_dtype(*name)) return *dtype;
  fail(ErrorCode::kConfig, callee, ": '", *name, "' is not a dtype",
       did_you_mean(*name, dtype_names()));
}

/// min, max and bits of an integer dtype.
Value integer_limits(const Value& value) {
  const DType dtype = dtype_of("iinfo", value);
  if (!is_integer(dtype) || info(dtype).bits < 8)
    fail(ErrorCode::kConfig, "iinfo: ", text(dtype), " is not an integer type");
  const int bits = info(dtype).bits;
  const bool is_signed = info(dtype).kind == DTypeKind::kSigned;
  if (!is_signed && bits == 64)
    fail(ErrorCode::kConfig, "iinfo: the limits of uint64 are beyond 64-bit signed numbers");
  const int64_t most = static_cast<int64_t>((uint64_t{1} << (is_signed ? bits - 1 : bits)) - 1);
  return Value::map({{"min", Value(is_signed ? -most - 1 : int64_t{0})},
                     {"max", Value(most)},
                     {"bits", Value(int64_t{bits})}});
}

/// min, max, eps, tiny and bits of a float dtype, as in PyTorch.
Value float_limits(const Value& value) {
  const DType dtype = dtype_of("finfo", value);
  struct Format {
    DType dtype;
    int digits, max_exponent;  ///< of the significand, with the leading 1; max < 2^max_exponent
  };
  constexpr Format kFormats[] = {{DType::kF64, 53, 1024},
                                 {DType::kF32, 24, 128},
                                 {DType::kBF16, 8, 128},
                                 {DType::kF16, 11, 16}};
  for (const Format& f : kFormats) {
    if (f.dtype != dtype) continue;
    const double eps = std::ldexp(1.0, 1 - f.digits);
    const double most = std::ldexp(2.0 - eps, f.max_exponent - 1);
    return Value::map({{"min", Value(-most)},
                       {"max", Value(most)},
                       {"eps", Value(eps)},
                       {"tiny", Value(std::ldexp(1.0, 2 - f.max_exponent))},
                       {"bits", Value(int64_t{info(dtype).bits})}});
  }
  fail(ErrorCode::kConfig, "finfo: expected float64, float32, bfloat16 or float16, found ",
       text(dtype));
}

Value length(const Value& value) {
  if (value.is_tensor()) {
    if (value.tensor().ndim() == 0) fail(ErrorCode::kConfig, "len of a 0-D tensor");
    return value.tensor().dim(0);
  }
  if (const ValueList* items = value.items()) return static_cast<int64_t>(items->size());
  if (const auto* map = value.get<Value::Map>()) return static_cast<int64_t>(map->entries->size());
  if (const auto* text = value.get<std::string>()) return static_cast<int64_t>(text->size());
  reject_value("len", "a list", value);
}

Value calculate_gain(const ValueList& args) {
  constexpr std::string_view kCallee = "calculate_gain";
  need(kCallee, args, 1, 2);
  const auto* name = args[0].get<std::string>();
  if (!name) reject_value(kCallee, "the name of an activation", args[0]);
  std::optional<double> slope;
  if (args.size() == 2 && !args[1].is_none()) slope = number_of(kCallee, args[1]);
  return activation_gain(kCallee, *name, slope);
}

bool any_tensor(const Arguments& arguments) {
  for (const Value& value : arguments.positional) {
    if (holds_tensor(value)) return true;
  }
  for (const auto& [name, value] : arguments.named) {
    if (holds_tensor(value)) return true;
  }
  return false;
}

}  // namespace

Value Evaluation::call_builtin(const std::string& name, Arguments arguments, const Site& site,
                               Frame& frame) {
  const SourcePosition& where = site.where;
  if (name == "param") return variables_.call_param(arguments, where, frame);
  if (name == "state") return variables_.call_state(arguments, where, frame);
  if (name == "update") return variables_.call_update(arguments, where);
  if (name == "get") return variables_.call_get(arguments, where);
  if (name == "sparse_embedding") return call_sparse_embedding(std::move(arguments), site, frame);
  if (name == "experts") return call_experts(std::move(arguments), site, frame);
  auto& args = arguments.positional;
  if (name == "len" && args.size() == 1)
    return with_location_scope(where, [&] { return length(args[0]); });
  if ((name == "finfo" || name == "iinfo") && args.size() == 1)
    return with_location_scope(
        where, [&] { return name == "finfo" ? float_limits(args[0]) : integer_limits(args[0]); });
  if (name == "enumerate" || name == "zip")
    for (Value& each : args)
      if (each.is_tensor()) each = elements_of(each.tensor(), where);
  const bool loops = name == "range" || name == "enumerate" || name == "zip" || name == "static";
  if (any_tensor(arguments) && !loops) {
    if (name == "sum" && !args.empty() && args[0].items()) {
      const ValueList items = *args[0].items();
      Value total = args.size() > 1 ? args[1] : items[0];
      for (size_t i = args.size() > 1 ? 0 : 1; i < items.size(); ++i) {
        total = operations_.binary("+", total, items[i], where);
      }
      return total;
    }
    if (name == "int" || name == "float" || name == "bool") {
      if (args.size() != 1 || !args[0].is_tensor()) reject(where, str(name, " takes one value"));
      const char* dtype = name == "int" ? "int64" : name == "float" ? "float32" : "bool";
      return operations_.op("cast", {args[0], Value(dtype)}, where);
    }
    if ((name == "max" || name == "min") &&
        (args.size() > 1 && (args[1].is_tensor() || !args[0].is_tensor()))) {
      reject(where, str(name, " of several tensors: write ", name, "imum(x, y)"));
    }
    const Op* operation = find_op(name);
    if (!operation) reject(where, str("'", name, "' does not take a tensor"));
    return call_op(*operation, std::move(arguments), site, frame);
  }
  if (!arguments.named.empty()) {
    const auto& [argument, value] = arguments.named[0];
    const bool known = args.size() == 1 && arguments.named.size() == 1 &&
                       ((name == "enumerate" && argument == "start") ||
                        (name == "calculate_gain" && argument == "param"));
    if (!known) reject(where, str("'", name, "' has no argument '", argument, "'"));
    args.push_back(value);
  }
  return with_location_scope(where, [&]() -> Value {
    if (name == "calculate_gain") return calculate_gain(args);
    if (name == "range") return range(args);
    if (name == "enumerate") return enumerate(args);
    if (name == "zip") return zip(args);
    if (name == "max" || name == "min") return extremum(name, args);
    if (name == "round") return round_number(args);
    if (name == "sum") {
      need("sum", args, 1, 2);
      Value total = args.size() > 1 ? args[1] : Value(int64_t{0});
      const ValueList items = list_of("sum", args[0]);
      for (const Value& item : items) total = operations_.binary("+", total, item, where);
      return total;
    }
    need(name, args, 1, 1);
    if (name == "len") return length(args[0]);
    if (name == "abs") return absolute(args[0]);
    if (name == "int" || name == "float" || name == "bool") return convert(name, args[0]);
    if (name == "static") {
      if (const auto* dim = args[0].get<Dim>()) return options().store->static_value(*dim);
      return integer_of(name, args[0]);
    }
    if ((name == "floor" || name == "ceil") && (args[0].is_integer() || args[0].is_dim()))
      return args[0];
    return real_function(name, number_of(name, args[0]));
  });
}

}  // namespace paddle::lang
