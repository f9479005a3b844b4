#include "inspect/op_call.h"

#include <cmath>
#include <complex>
#include <limits>

#include "formats/npz.h"
#include "tensor/random.h"

namespace paddle::inspect {

NamedCall::NamedCall(const Op& op, std::vector<std::pair<std::string, Argument>> arguments)
    : given_(&op), op_(bind_arguments(op, {}, arguments).op), arguments_(std::move(arguments)) {
  for (auto& [name, value] : arguments_) {
    name = parameter_name(*op_, name);
    if (op_->operand_index(name) < 0) continue;
    const auto add = [&](const Tensor& t, const std::string& key) {
      if (!t.defined() || t.type().weak) return;
      positions_[key].push_back(inputs_.size());
      inputs_.push_back(t.array());
    };
    if (const auto* t = std::get_if<Tensor>(&value)) add(*t, name);
    if (const auto* list = std::get_if<Tensors>(&value))
      for (const Tensor& t : *list) add(t, name);
  }
}

const std::vector<size_t>& NamedCall::positions(const std::string& argument) const {
  const auto it = positions_.find(parameter_name(*op_, argument));
  if (it == positions_.end())
    fail(ErrorCode::kUsage, op_->name(), ": '", argument, "' holds no tensor");
  return it->second;
}

void NamedCall::hold(const std::string& argument) {
  for (const size_t i : positions(argument)) constants_.insert(i);
}

std::string NamedCall::input_name(size_t input) const {
  for (const auto& [name, positions] : positions_)
    for (size_t i = 0; i < positions.size(); ++i)
      if (positions[i] == input) return positions.size() == 1 ? name : str(name, "[", i, "]");
  return "?";
}

Bound NamedCall::bind(const Tensors& inputs) const {
  auto arguments = arguments_;
  for (auto& [name, value] : arguments) {
    const auto it = positions_.find(name);
    if (it == positions_.end()) continue;
    if (auto* t = std::get_if<Tensor>(&value)) *t = inputs[it->second[0]];
    if (auto* list = std::get_if<Tensors>(&value)) {
      size_t next = 0;
      for (Tensor& t : *list)
        if (t.defined() && !t.type().weak) t = inputs[it->second[next++]];
    }
  }
  return bind_arguments(*given_, {}, std::move(arguments));
}

Tensors NamedCall::operator()(const Tensors& inputs) const {
  Bound bound = bind(inputs);
  return call_visible(*op_, std::move(bound.operands), std::move(bound.attrs));
}

const AttrDef* find_attr(const Op& op, const std::string& name) {
  const int i = op.attr_index(parameter_name(op, name));
  return i < 0 ? nullptr : &op.attrs()[static_cast<size_t>(i)];
}

namespace {

constexpr int64_t kMaxElements = int64_t{1} << 31;

/// Splits at commas that stand in no bracket.
std::vector<std::string> split_items(std::string_view text) {
  std::vector<std::string> out;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && std::string_view("[({").find(text[i]) != std::string_view::npos) ++depth;
    if (i < text.size() && std::string_view("])}").find(text[i]) != std::string_view::npos) --depth;
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      if (i > begin || i < text.size()) out.emplace_back(trim(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  return out;
}

double number_of(const std::string& word) {
  if (word == "inf") return std::numeric_limits<double>::infinity();
  if (word == "-inf") return -std::numeric_limits<double>::infinity();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (word == "true") return 1;
  if (word == "false") return 0;
  const AttrValue v = AttrValue::parse(word);
  if (!v.is_float() && !(v.is_int() && v.as_dim().is_constant()))
    fail(ErrorCode::kUsage, "'", word, "' is not a number");
  return v.as_double();
}

/// The text between `open` and `close` at the start of `rest`, which is moved after it.
std::optional<std::string> take_group(std::string_view& rest, char open, char close) {
  if (rest.empty() || rest[0] != open) return std::nullopt;
  const size_t end = rest.find(close);
  if (end == std::string_view::npos) fail(ErrorCode::kUsage, "'", close, "' is missing");
  std::string inside(rest.substr(1, end - 1));
  rest.remove_prefix(end + 1);
  return inside;
}

void fill_random(Array& a, const std::string& name,
                 std::optional<std::pair<double, double>> range) {
  const auto count = static_cast<size_t>(a.size());
  std::vector<double> numbers(count);
  const Random random(11, stream_of(name));
  if (range || !is_float(a.dtype))
    random.fill_uniform(std::span(numbers));
  else
    random.fill_normal(std::span(numbers));
  if (is_bool(a.dtype) && !range) range = {0, 2};
  if (is_integer(a.dtype) && !range) range = {0, 10};
  for (double& v : numbers) {
    if (range) v = range->first + v * (range->second - range->first);
    if (!is_float(a.dtype)) v = std::floor(v);
  }
  a = Array::from(numbers, a.shape).cast(a.dtype);
}

/// The same for both parts.
void fill_random_complex(Array& a, const std::string& name,
                         std::optional<std::pair<double, double>> range) {
  Dims shape = a.shape;
  shape.push_back(2);
  Array parts = Array::zeros(DType::kF64, shape);
  fill_random(parts, name, range);
  for (int64_t i = 0; i < a.size(); ++i) {
    const double* const pair = parts.data<double>() + 2 * i;
    if (a.dtype == DType::kC128)
      a.data<std::complex<double>>()[i] = {pair[0], pair[1]};
    else
      a.data<std::complex<float>>()[i] = {static_cast<float>(pair[0]), static_cast<float>(pair[1])};
  }
}

/// A tensor as `parse_call` describes it, or nullopt if the word means something else.
std::optional<Tensor> parse_tensor(const std::string& name, const std::string& word) {
  if (word.starts_with("@")) {
    const std::string path = word.substr(1);
    const size_t colon = path.rfind(".npz:");
    if (colon != std::string::npos)
      return Tensor(formats::NpzReader(path.substr(0, colon + 4)).read(path.substr(colon + 5)));
    return Tensor(formats::read_npy(path));
  }
  const size_t bracket = word.find_first_of("[(");
  if (bracket == std::string::npos || bracket == 0) return std::nullopt;
  const auto dtype = parse_dtype(word.substr(0, bracket));
  if (!dtype) return std::nullopt;
  std::string_view rest = std::string_view(word).substr(bracket);
  std::optional<Dims> shape;
  if (const auto inside = take_group(rest, '[', ']')) {
    shape.emplace();
    for (const std::string& d : split_items(*inside)) {
      const double size = number_of(d);
      if (size < 0 || size != std::floor(size) || size > static_cast<double>(kMaxElements))
        fail(ErrorCode::kUsage, "'", d, "' is not a size");
      shape->push_back(static_cast<int64_t>(size));
    }
    if (element_count(std::span<const int64_t>(*shape)) > kMaxElements)
      fail(ErrorCode::kUsage, "more than ", kMaxElements, " elements");
  }
  if (const auto inside = take_group(rest, '(', ')')) {
    std::vector<double> values;
    for (const std::string& v : split_items(*inside)) values.push_back(number_of(v));
    if (!shape) shape = Dims{static_cast<int64_t>(values.size())};
    if (element_count(std::span<const int64_t>(*shape)) != static_cast<int64_t>(values.size()))
      fail(ErrorCode::kUsage, "'", word, "' has ", values.size(), " numbers for ", str(*shape));
    return Tensor(Array::from(values, *shape).cast(*dtype));
  }
  std::optional<std::pair<double, double>> range;
  if (const auto inside = take_group(rest, '{', '}')) {
    const auto ends = split_items(*inside);
    if (ends.size() != 2) fail(ErrorCode::kUsage, "a range is written {low,high}");
    range = {number_of(ends[0]), number_of(ends[1])};
  }
  if (!rest.empty()) fail(ErrorCode::kUsage, "'", rest, "' after a tensor");
  Array a = Array::zeros(*dtype, *shape);
  if (is_complex(a.dtype))
    fill_random_complex(a, name, range);
  else
    fill_random(a, name, range);
  return Tensor(a);
}

AttrValue parse_attr(const AttrDef* def, const std::string& word) {
  const AttrType type = def ? def->type : AttrType::kNumber;
  if (word == "none" || word == "null") return {};
  if (type == AttrType::kString || type == AttrType::kWord || type == AttrType::kDType) {
    if (word.size() > 1 && word.front() == word.back() && (word[0] == '\'' || word[0] == '"'))
      return word.substr(1, word.size() - 2);
    return word;
  }
  if (word.starts_with("[") && word.ends_with("]")) {
    AttrValue::List items;
    for (const std::string& item : split_items(std::string_view(word).substr(1, word.size() - 2)))
      items.push_back(type == AttrType::kStrings ? AttrValue(item) : parse_attr(def, item));
    return items;
  }
  if (word == "inf" || word == "-inf" || word == "nan") return number_of(word);
  AttrValue v = AttrValue::parse(word);
  if (v.is_dtype() || (v.is_int() && !v.as_dim().is_constant())) return word;
  return v;
}

Argument parse_argument(const Op& op, const std::string& name, const std::string& word) {
  if (auto t = parse_tensor(name, word)) return *t;
  const int operand = op.operand_index(parameter_name(op, name));
  if (operand >= 0 && word.starts_with("[") && word.ends_with("]")) {
    Tensors list;
    for (const std::string& item : split_items(std::string_view(word).substr(1, word.size() - 2))) {
      auto t = parse_tensor(str(name, list.size()), item);
      if (!t) fail(ErrorCode::kUsage, "'", item, "' is not a tensor");
      list.push_back(*t);
    }
    return list;
  }
  return parse_attr(find_attr(op, name), word);
}

}  // namespace

NamedCall parse_call(const Op& op, const std::vector<std::string>& words) {
  std::vector<std::pair<std::string, Argument>> arguments;
  std::vector<std::string> held;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      fail(ErrorCode::kUsage, "expected name=value, found '", word, "'");
    const std::string name = word.substr(0, equals);
    std::string value = word.substr(equals + 1);
    if (value.ends_with("!")) {
      value.pop_back();
      held.push_back(name);
    }
    try {
      arguments.emplace_back(name, parse_argument(op, name, value));
    } catch (const Error& e) {
      fail(e.code(), op.name(), ": ", name, ": ", e.message());
    }
  }
  NamedCall call(op, std::move(arguments));
  for (const std::string& name : held) call.hold(name);
  return call;
}

}  // namespace paddle::inspect
