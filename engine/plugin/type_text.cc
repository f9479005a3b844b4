#include "plugin/type_text.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace paddle::plugin {
namespace {

class TypeReader {
 public:
  TypeReader(const std::string& text, std::span<const OperandDef> operands,
             std::span<const AttrDef> attributes, const SourceLocation& place)
      : text_(text), operands_(operands), attributes_(attributes), place_(place) {}

  TypeText read() {
    const std::string_view text = trim(text_);
    if (text.starts_with("like ")) {
      out_.like = operand(trim(text.substr(5)));
      return out_;
    }
    const size_t open = text.find('[');
    if (open == std::string_view::npos || !text.ends_with("]"))
      reject("expected 'like OPERAND' or 'DTYPE [DIM, …]'");
    read_dtype(trim(text.substr(0, open)));
    const std::string_view dims = text.substr(open + 1, text.size() - open - 2);
    if (!trim(dims).empty()) read_dims(dims);
    return out_;
  }

 private:
  static constexpr size_t kMaxRank = 64;

  [[noreturn]] void reject(const std::string& why) const {
    throw Error(ErrorCode::kConfig, "infer: '" + text_ + "': " + why, place_);
  }

  void read_dtype(std::string_view text) {
    if (text.ends_with(".dtype")) {
      out_.dtype_of = operand(text.substr(0, text.size() - 6));
    } else if (const auto dtype = parse_dtype(text)) {
      out_.dtype = *dtype;
    } else {
      reject(str("expected a dtype or OPERAND.dtype, found '", text, "'"));
    }
  }

  /// Splits at the commas outside of parentheses.
  void read_dims(std::string_view text) {
    int nested = 0;
    size_t begin = 0;
    for (size_t i = 0; i <= text.size(); ++i) {
      if (i < text.size() && text[i] == '(') ++nested;
      if (i < text.size() && text[i] == ')') --nested;
      if (i < text.size() && (text[i] != ',' || nested > 0)) continue;
      out_.dims.push_back(read_dim(text.substr(begin, i - begin)));
      if (out_.dims.size() > kMaxRank) reject("has too many dims");
      begin = i + 1;
    }
  }

  /// `dim(x, 0)` becomes a symbol, so that the rest is an expression of dims.
  Dim read_dim(std::string_view text) {
    if (const std::string_view word = trim(text); word.starts_with("?")) {
      for (const char c : word.substr(1))
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'))
          reject(str("'", word, "': after ? there may be a name"));
      // Without a name each one is a size of its own.
      const std::string name =
          word == "?" ? str("?", out_.symbols.size(), " of ", text_) : std::string(word);
      out_.symbols.push_back({.name = name, .run_time = true});
      return Dim::symbol(name);
    }
    std::string rest;
    for (size_t at = 0; at < text.size();) {
      const size_t call = text.find("dim(", at);
      rest += text.substr(at, std::min(call, text.size()) - at);
      if (call == std::string_view::npos) break;
      const size_t end = text.find(')', call);
      if (end == std::string_view::npos) reject("'dim(' is not closed");
      rest += dim_of_operand(text.substr(call + 4, end - call - 4));
      at = end + 1;
    }
    try {
      Dim dim = Dim::parse(trim(rest));
      std::vector<std::string> names;
      dim.collect_symbols(names);
      for (const std::string& name : names) require_symbol(name);
      return dim;
    } catch (const Error& e) {
      if (!e.location().file.empty()) throw;
      reject(e.message());
    }
  }

  std::string dim_of_operand(std::string_view arguments) {
    const size_t comma = arguments.find(',');
    if (comma == std::string_view::npos) reject("expected dim(OPERAND, AXIS)");
    TypeText::Symbol symbol;
    symbol.operand = operand(trim(arguments.substr(0, comma)));
    const std::string_view axis = trim(arguments.substr(comma + 1));
    const auto [stop, error] = std::from_chars(axis.data(), axis.data() + axis.size(), symbol.axis);
    if (error != std::errc() || stop != axis.data() + axis.size())
      reject(str("'", axis, "' is not an axis"));
    symbol.name = str("dim_", out_.symbols.size());
    out_.symbols.push_back(symbol);
    return symbol.name;
  }

  void require_symbol(const std::string& name) {
    for (const TypeText::Symbol& known : out_.symbols)
      if (known.name == name) return;
    for (size_t i = 0; i < attributes_.size(); ++i)
      if (name == attributes_[i].name &&
          (attributes_[i].type == AttrType::kInt || attributes_[i].type == AttrType::kDim)) {
        out_.symbols.push_back({.name = name, .attribute = static_cast<int>(i)});
        return;
      }
    reject("there is no integer attribute '" + name +
           "'; a dim of an operand is dim(OPERAND, AXIS)");
  }

  int operand(std::string_view name) const {
    for (size_t i = 0; i < operands_.size(); ++i)
      if (name == operands_[i].name && operands_[i].kind == OperandKind::kTensor &&
          !operands_[i].optional)
        return static_cast<int>(i);
    reject(str("'", name, "' is not an operand of every call"));
  }

  const std::string& text_;
  std::span<const OperandDef> operands_;
  std::span<const AttrDef> attributes_;
  const SourceLocation& place_;
  TypeText out_;
};

Dim value_of(const TypeText::Symbol& symbol, const InferContext& c) {
  if (symbol.attribute >= 0) return c.attrs()[static_cast<size_t>(symbol.attribute)].as_dim();
  const auto operand = static_cast<size_t>(symbol.operand);
  return c.shape(operand)[static_cast<size_t>(c.axis(symbol.axis, c.rank(operand)))];
}

}  // namespace

TypeText read_type_text(const std::string& text, std::span<const OperandDef> operands,
                        std::span<const AttrDef> attributes, const SourceLocation& place) {
  return TypeReader(text, operands, attributes, place).read();
}

bool has_run_time_dim(const TypeText& text) {
  return std::ranges::any_of(text.symbols, &TypeText::Symbol::run_time);
}

TensorType type_of(const TypeText& text, InferContext& c, std::map<std::string, Dim>& run_time) {
  if (text.like >= 0) return c.type(static_cast<size_t>(text.like));
  TensorType out;
  out.dtype = text.dtype_of >= 0 ? c.dtype(static_cast<size_t>(text.dtype_of)) : text.dtype;
  const auto replace = [&](const std::string& name) -> std::optional<Dim> {
    for (const TypeText::Symbol& symbol : text.symbols)
      if (symbol.name == name && symbol.run_time) {
        const auto known = run_time.find(name);
        return known != run_time.end() ? known->second
                                       : run_time.emplace(name, c.run_time_dim()).first->second;
      } else if (symbol.name == name) {
        return value_of(symbol, c);
      }
    return std::nullopt;
  };
  for (const Dim& dim : text.dims) {
    out.shape.push_back(dim.substitute(replace));
    if (const auto size = out.shape.back().constant(); size && *size < 0)
      c.reject("a dim of the result would be ", *size);
  }
  return out;
}

}  // namespace paddle::plugin
