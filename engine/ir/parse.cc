// Reads the text form back. Errors are kModel with file, line and column; sizes are bounded by the
// text itself.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "base/hex.h"
#include "base/version.h"
#include "ir/constants.h"
#include "ops/core/access.h"
#include "ops/core/call.h"

namespace paddle::ir {
namespace {

constexpr int kMaxDepth = 100;

class Parser {
 public:
  Parser(std::string_view text, const std::string& file, const ConstantStore* store,
         uint32_t allowed_accesses)
      : text_(text), file_(file), store_(store), allowed_accesses_(allowed_accesses) {}

  Module module() {
    Module m;
    while (take_word("plugin")) require_plugin();
    word("module");
    m.name = string();
    expect("{");
    while (!take("}")) {
      if (take_word("parameter"))
        m.parameters.push_back(slot());
      else if (take_word("state"))
        m.states.push_back(slot());
      else if (take_word("func"))
        m.functions.push_back(function());
      else
        bad("expected 'parameter', 'state', 'func' or '}'");
    }
    space();
    if (at_ != text_.size()) bad("expected the end of the file");
    return m;
  }

 private:
  [[noreturn]] void bad(const std::string& what) const {
    SourceLocation place{file_, 1, 1};
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
      ++place.column;
      if (text_[i] == '\n') {
        ++place.line;
        place.column = 1;
      }
    }
    throw Error(ErrorCode::kModel, what, place);
  }
  template <class F>
  auto with_location(F&& f) -> decltype(f()) {
    try {
      return f();
    } catch (const Error& e) {
      if (!e.location().file.empty()) throw;
      bad(e.message());
    }
  }

  /// `plugin NAME VERSION`: a plug-in that operations of the module come from.
  void require_plugin() {
    const std::string name = read_word(), version = read_word();
    const Provider* const provider = find_provider(name);
    if (!provider)
      bad(str("needs the plug-in ", name, " ≥ ", version,
              "; name its file with --plugin or PADDLE_PLUGINS"));
    if (is_older_version(provider->version, version))
      bad(str("needs the plug-in ", name, " ≥ ", version, ", loaded is ", provider->version));
  }

  // --- tokens ---
  void space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '/' && text_.substr(at_, 2) == "//") {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        return;
      }
    }
  }
  /// Skips blanks only: the text after `//` on an operation's line is its source location.
  void blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    space();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  bool is_next(char wanted) {
    space();
    return at_ < text_.size() && text_[at_] == wanted;
  }
  void expect(std::string_view token) {
    if (!take(token)) bad("expected '" + std::string(token) + "'");
  }
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  }
  std::string read_word() {
    space();
    const size_t start = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (start == at_) bad("expected a name");
    return std::string(text_.substr(start, at_ - start));
  }
  bool take_word(std::string_view wanted) {
    space();
    if (!text_.substr(at_).starts_with(wanted)) return false;
    const size_t end = at_ + wanted.size();
    if (end < text_.size() && is_word(text_[end])) return false;
    at_ = end;
    return true;
  }
  void word(std::string_view wanted) {
    if (!take_word(wanted)) bad("expected '" + std::string(wanted) + "'");
  }
  std::string string() {
    space();
    const size_t start = at_;
    if (at_ >= text_.size() || text_[at_] != '\'') bad("expected a quoted name");
    for (++at_; at_ < text_.size() && text_[at_] != '\''; ++at_)
      if (text_[at_] == '\\') ++at_;
    if (at_ >= text_.size()) bad("the quote is not closed");
    ++at_;
    return AttrValue::parse(text_.substr(start, at_ - start)).as_string();
  }
  int64_t number_below(int64_t bound) {
    space();
    int64_t value = 0;
    const size_t start = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && value < bound)
      value = value * 10 + (text_[at_++] - '0');
    if (start == at_ || value >= bound) bad("expected a number");
    return value;
  }
  int number() { return static_cast<int>(number_below(1 << 30)); }
  /// The text up to one of `ends` outside brackets and quotes.
  std::string_view until(std::string_view ends) {
    const size_t start = at_;
    int open = 0;
    bool quoted = false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (quoted && c == '\\') {
        ++at_;
        continue;
      }
      if (c == '\'') quoted = !quoted;
      if (quoted) continue;
      if (open == 0 && ends.find(c) != std::string_view::npos) break;
      if (c == '(' || c == '[') ++open;
      if (c == ')' || c == ']') --open;
      if (c == '\n') bad("unexpected end of line");
    }
    return trim(text_.substr(start, std::min(at_, text_.size()) - start));
  }

  // --- types and names ---
  TensorType type() {
    TensorType t;
    const std::string name = read_word();
    const auto dtype = parse_dtype(name);
    if (!dtype) bad("'" + name + "' is not a dtype");
    t.dtype = *dtype;
    expect("[");
    if (take("...]")) {
      t.ranked = false;
      return t;
    }
    if (take("]")) return t;
    while (true) {
      const std::string_view dim = until(",]");
      t.shape.push_back(with_location([&] { return Dim::parse(dim); }));
      if (take("]")) return t;
      expect(",");
      space();
      if (t.shape.size() > 64) bad("more than 64 dimensions");
    }
  }
  /// Of a type that was read; nothing if each rank has all of it.
  Placement placement(const TensorType& type) {
    Placement out;
    blanks();  // a location may follow
    if (!text_.substr(std::min(at_, text_.size())).starts_with("split[")) return out;
    word("split");
    constexpr int64_t kMaxUnits = int64_t{1} << 50;
    expect("[");
    do {
      Split& s = out.emplace_back();
      s.dim = number();
      expect(":");
      s.outer = number_below(kMaxUnits);
      expect("x");
      s.units = number_below(kMaxUnits);
      word("over");
      s.axis = number();
      if (take_word("zigzag")) s.order = SplitOrder::kZigzag;
      if (static_cast<size_t>(s.dim) >= type.shape.size() || s.outer < 1 || s.units < 1)
        bad("a split of dim " + std::to_string(s.dim) + " does not fit " + type.text());
    } while (take(";"));
    expect("]");
    return out;
  }
  Slot slot() {
    Slot s;
    s.name = string();
    expect(":");
    s.type = type();
    s.placement = placement(s.type);
    expect("=");
    s.initializer = string();
    s.trainable = !take_word("frozen");
    for (const SlotScope scope : {SlotScope::kSequence, SlotScope::kTraining})
      if (take_word(text(scope))) s.scope = scope;
    return s;
  }
  Port port() {
    Port p;
    if (take_word("parameter"))
      p.kind = PortKind::kParameter;
    else if (take_word("state"))
      p.kind = PortKind::kState;
    else if (take_word("random"))
      p.kind = PortKind::kRandom;
    p.name = string();
    return p;
  }
  Value* use() {
    expect("%");
    const int id = number();
    const auto it = values_.find(id);
    if (it == values_.end()) bad("%" + std::to_string(id) + " is not defined here");
    return it->second;
  }
  void define(int id, Value* value) {
    if (!values_.emplace(id, value).second) bad("%" + std::to_string(id) + " is defined twice");
  }
  /// A value where it is defined: its number and, if it has one, its name.
  struct Definition {
    int id = 0;
    std::string name;
  };
  Definition definition() {
    Definition out;
    expect("%");
    out.id = number();
    space();
    if (at_ < text_.size() && text_[at_] == '\'') out.name = string();
    return out;
  }
  void define(Definition definition, Value* value, Placement placement) {
    value->name = std::move(definition.name);
    value->placement = std::move(placement);
    define(definition.id, value);
  }

  // --- functions ---
  TargetInfo target() {
    TargetInfo out;
    expect("{");
    do {
      const std::string key = read_word();
      expect("=");
      if (key == "device") {
        const std::string name = string();
        out.device = with_location([&] { return parse_device(name); });
      } else if (key == "architecture") {
        out.architecture = string();
      } else if (key == "features") {
        expect("[");
        do out.features.push_back(string());
        while (take(","));
        expect("]");
      } else {
        target_number(out, key);
      }
    } while (take(","));
    expect("}");
    return out;
  }
  void target_number(TargetInfo& out, const std::string& key) {
    constexpr int64_t kMaxBytes = int64_t{1} << 50, kMaxChannels = int64_t{1} << 30;
    constexpr int64_t kMaxFused = 1 << 12, kMaxAlignment = int64_t{1} << 21;
    const struct {
      std::string_view key;
      int64_t& value;
      int64_t bound;
    } numbers[] = {
        {"channels_last", out.images.channels_last, kMaxChannels},
        {"also_channels_last", out.images.also_channels_last, kMaxChannels},
        {"fused_operations", out.fusion.operations, kMaxFused},
        {"fused_operands", out.fusion.operands, kMaxFused},
        {"fused_reductions", out.fusion.reductions, kMaxFused},
        {"tile_bytes", out.tile_bytes, kMaxBytes},
        {"alignment", out.alignment, kMaxAlignment},
        {"memory", out.memory, kMaxBytes},
    };
    const auto found = std::find_if(std::begin(numbers), std::end(numbers),
                                    [&](const auto& number) { return number.key == key; });
    if (found == std::end(numbers)) bad("a target has no '" + key + "'");
    found->value = number_below(found->bound);
    if (key == "alignment" && !std::has_single_bit(static_cast<uint64_t>(out.alignment)))
      bad("an alignment must be a power of two");
  }

  std::shared_ptr<Function> function() {
    values_.clear();
    auto f = std::make_shared<Function>(string());
    function_ = f.get();
    expect("(");
    if (!take(")")) {
      do {
        Definition defined = definition();
        expect(":");
        TensorType t = type();
        Placement place = placement(t);
        define(std::move(defined), f->add_input(port(), std::move(t)), std::move(place));
      } while (take(","));
      expect(")");
    }
    if (take_word("target")) f->target = target();
    expect("{");
    while (constant_or_requirement()) {
    }
    operations(f->body, 0);
    word("return");
    space();
    if (at_ < text_.size() && text_[at_] == '%') {
      do {
        Value* v = use();
        f->add_output(port(), v);
      } while (take(","));
    }
    expect("}");
    return f;
  }

  bool constant_or_requirement() {
    if (take_word("require")) {
      DimConstraint c;
      const size_t start = at_;
      const size_t middle = text_.find("==", at_);
      const size_t quote = middle == std::string_view::npos ? middle : text_.find('\'', middle);
      if (quote == std::string_view::npos) bad("expected 'require DIM == DIM 'what''");
      c.left = with_location([&] { return Dim::parse(trim(text_.substr(start, middle - start))); });
      c.right = with_location(
          [&] { return Dim::parse(trim(text_.substr(middle + 2, quote - middle - 2))); });
      at_ = quote;
      c.what = string();
      function_->constraints.push_back(std::move(c));
      return true;
    }
    const size_t before = at_;
    space();
    if (at_ >= text_.size() || text_[at_] != '%') {
      at_ = before;
      return false;
    }
    Definition defined = definition();
    if (!take("=") || !take_word("constant")) {
      at_ = before;
      return false;
    }
    const TensorType t = type();
    Placement place = placement(t);
    if (!is_constant(t.shape) || t.dtype == DType::kString)
      bad("a constant of the type " + t.text());
    if (take_word("elided")) bad("the elements of this constant were elided");
    const Dims dims = concrete(t.shape);
    if (take_word("at")) {
      define(std::move(defined), function_->add_constant(stored(string(), t.dtype, dims)),
             std::move(place));
      return true;
    }
    const int64_t count =
        with_location([&] { return element_count(std::span<const int64_t>(dims)); });
    // Each element takes at least two characters ("1,"), which bounds what is allocated.
    if (count < 0 || static_cast<uint64_t>(count) > text_.size() - at_)
      bad("the constant is longer than the file");
    Array a = Array::empty(t.dtype, dims);
    if (!info(t.dtype).has_kernels) {
      word("bytes");
      store_bytes(a, string());
      define(std::move(defined), function_->add_constant(std::move(a)), std::move(place));
      return true;
    }
    expect("[");
    for (int64_t i = 0; i < count; ++i) {
      if (i) expect(",");
      space();
      const std::string_view token = until(",]");
      with_location([&] { store(a, i, AttrValue::parse(token)); });
    }
    expect("]");
    define(std::move(defined), function_->add_constant(std::move(a)), std::move(place));
    return true;
  }

  /// A constant by reference.
  Array stored(const std::string& name, DType dtype, const Dims& dims) {
    if (!store_) bad("the elements of this constant are in another file, '" + name + "'");
    Array a = with_location([&] { return store_->get(name); });
    if (a.dtype != dtype || a.shape != dims)
      bad(str("'", name, "' is ", paddle::text(a.dtype), str(a.shape), ", not the constant"));
    return a;
  }

  void store_bytes(Array& a, const std::string& digits) {
    const auto size = static_cast<size_t>(storage_bytes(a.dtype, a.size()));
    if (digits.size() != 2 * size)
      bad(str("expected ", 2 * size, " hexadecimal digits, found ", digits.size()));
    const auto digit = [&](char c) {
      const int value = hex_value(c);
      if (value < 0) bad(str("'", c, "' is not a hexadecimal digit"));
      return value;
    };
    auto* bytes = static_cast<uint8_t*>(a.raw());
    for (size_t i = 0; i < size; ++i)
      bytes[i] = static_cast<uint8_t>(digit(digits[2 * i]) * 16 + digit(digits[2 * i + 1]));
  }

  static void store(Array& a, int64_t i, const AttrValue& v) {
    visit_dtype(a.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_same_v<T, bool>)
        a.data<T>()[i] = v.as_bool();
      else if constexpr (std::is_integral_v<T>)
        a.data<T>()[i] = static_cast<T>(v.as_int());
      else if constexpr (std::is_same_v<T, double>)
        a.data<T>()[i] = v.as_double();
      else
        a.data<T>()[i] = T(static_cast<float>(v.as_double()));
    });
  }

  void operations(Region& region, int depth) {
    if (depth > kMaxDepth) bad("regions are nested too deeply");
    while (true) {
      space();
      if (take_word_ahead("return") || take_word_ahead("yield") || at_ >= text_.size()) return;
      operation(region, depth);
    }
  }
  bool take_word_ahead(std::string_view wanted) {
    const size_t before = at_;
    const bool found = take_word(wanted);
    at_ = before;
    return found;
  }

  void operation(Region& region, int depth) {
    std::vector<Definition> defined;
    space();
    if (at_ < text_.size() && text_[at_] == '%') {
      do defined.push_back(definition());
      while (take(","));
      expect("=");
    }
    const std::string name = read_word();
    const Op* op = find_op(name);
    if (!op) bad("unknown operation '" + name + "'" + did_you_mean(name, op_names()));
    if (const std::string error = access_error(*op, allowed_accesses_); !error.empty()) bad(error);
    Attrs attrs = default_attrs(*op);
    std::vector<Value*> operands;
    expect("(");
    bool first = true;
    for (const OperandDef& def : op->operands()) {
      // Optional operands that the operation did not have when the text was written.
      if (!first && def.kind == OperandKind::kTensor && def.optional && is_next(')')) {
        operands.push_back(nullptr);
        continue;
      }
      if (!first) expect(",");
      first = false;
      if (def.kind == OperandKind::kTensor) {
        operands.push_back(take("_") ? nullptr : use());
        continue;
      }
      expect("[");
      int32_t count = 0;
      if (!take("]")) {
        do {
          operands.push_back(use());
          ++count;
        } while (take(","));
        expect("]");
      }
      attrs.list_sizes.push_back(count);
    }
    expect(")");
    if (take("{")) {
      do {
        const std::string key = read_word();
        const int index = op->attr_index(key);
        if (index < 0) bad("'" + name + "' has no attribute '" + key + "'");
        expect("=");
        space();
        const std::string_view value = until(",}");
        attrs[static_cast<size_t>(index)] = with_location([&] {
          return convert_attr(op->attrs()[static_cast<size_t>(index)], AttrValue::parse(value), "");
        });
      } while (take(","));
      expect("}");
    }
    expect(":");
    std::vector<TensorType> types;
    std::vector<Placement> places;
    for (size_t i = 0; i < defined.size(); ++i) {
      if (i) expect(",");
      types.push_back(type());
      places.push_back(placement(types.back()));
    }
    Operation* made = function_->append(region, *op, std::move(operands), std::move(attrs), types);
    for (size_t i = 0; i < defined.size(); ++i)
      define(std::move(defined[i]), made->results[i], std::move(places[i]));
    while (true) {
      blanks();
      if (at_ >= text_.size() || text_[at_] != '(') break;
      made->regions.push_back(nested(depth + 1));
    }
    blanks();
    if (text_.substr(std::min(at_, text_.size())).starts_with("// ")) {
      const size_t end = std::min(text_.find('\n', at_), text_.size());
      made->location = std::string(trim(text_.substr(at_ + 3, end - at_ - 3)));
      at_ = end;
    }
  }

  std::unique_ptr<Region> nested(int depth) {
    auto region = std::make_unique<Region>();
    expect("(");
    if (!take(")")) {
      do {
        Definition defined = definition();
        expect(":");
        TensorType t = type();
        Placement place = placement(t);
        define(std::move(defined), function_->add_argument(*region, std::move(t)),
               std::move(place));
      } while (take(","));
      expect(")");
    }
    expect("{");
    operations(*region, depth);
    word("yield");
    space();
    if (at_ < text_.size() && text_[at_] == '%') {
      do region->results.push_back(use());
      while (take(","));
    }
    expect("}");
    return region;
  }

  std::string_view text_;
  const std::string& file_;
  const ConstantStore* store_;
  uint32_t allowed_accesses_;
  size_t at_ = 0;
  Function* function_ = nullptr;
  std::unordered_map<int, Value*> values_;
};

}  // namespace

Module parse(std::string_view text, const std::string& file, uint32_t allowed_accesses) {
  return Parser(text, file, nullptr, allowed_accesses).module();
}

Module parse(std::string_view text, const std::string& file, const ConstantStore& store,
             uint32_t allowed_accesses) {
  return Parser(text, file, &store, allowed_accesses).module();
}

}  // namespace paddle::ir
