#include "formats/pickle/pickle.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <unordered_map>

namespace paddle::formats::pickle {

/// The stack machine.
class Reader::Machine {
 public:
  explicit Machine(Reader& reader) : r_(reader) {}

  const Value& run() {
    while (true) {
      const auto code = static_cast<unsigned char>(take(1)[0]);
      if (code == '.') return *pop();
      step(code);
    }
  }

 private:
  using Stack = std::vector<Value*>;

  [[noreturn]] void bad(const std::string& why) const {
    fail(ErrorCode::kModel, r_.path_, ": damaged pickle at byte ", r_.at_, ": ", why);
  }

  // --- bytes ---

  std::string_view take(uint64_t count) {
    if (count > r_.bytes_.size() - r_.at_) bad("it ends early");
    const std::string_view out(reinterpret_cast<const char*>(r_.bytes_.data()) + r_.at_,
                               static_cast<size_t>(count));
    r_.at_ += static_cast<size_t>(count);
    return out;
  }
  /// An unsigned little-endian number.
  uint64_t number(size_t bytes) {
    const std::string_view from = take(bytes);
    uint64_t out = 0;
    for (size_t i = bytes; i-- > 0;) out = out << 8 | static_cast<unsigned char>(from[i]);
    return out;
  }
  std::string_view line() {
    const char* const begin = reinterpret_cast<const char*>(r_.bytes_.data()) + r_.at_;
    const void* const end = std::memchr(begin, '\n', r_.bytes_.size() - r_.at_);
    if (!end) bad("a line does not end");
    const std::string_view out = take(static_cast<size_t>(static_cast<const char*>(end) - begin));
    take(1);
    return out;
  }

  // --- values ---

  Value* make(Kind kind) {
    constexpr size_t kMaxValues = size_t{1} << 22;
    if (r_.values_.size() >= kMaxValues) bad("it has more than four million values");
    Value& value = r_.values_.emplace_back();
    value.kind = kind;
    return &value;
  }
  void push(Value* value) { stack_.push_back(value); }
  Value* pop() {
    if (stack_.empty() || (!marks_.empty() && stack_.size() <= marks_.back()))
      bad("the stack is empty");
    Value* const out = stack_.back();
    stack_.pop_back();
    return out;
  }
  Value* top() {
    Value* const out = pop();
    push(out);
    return out;
  }
  /// Removes and returns the values above the last mark.
  Stack pop_mark() {
    if (marks_.empty()) bad("no mark on the stack");
    const auto begin = stack_.begin() + static_cast<ptrdiff_t>(marks_.back());
    Stack out(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return out;
  }
  void push_integer(int64_t integer) {
    Value* const value = make(Kind::kInt);
    value->integer = integer;
    push(value);
  }
  void push_bool(bool truth) {
    Value* const value = make(Kind::kBool);
    value->integer = truth ? 1 : 0;
    push(value);
  }
  void push_text(Kind kind, std::string_view text) {
    Value* const value = make(kind);
    value->text = text;
    push(value);
  }
  void push_real(double real) {
    Value* const value = make(Kind::kFloat);
    value->real = real;
    push(value);
  }
  void push_list(Kind kind, Stack items) {
    Value* const value = make(kind);
    value->items.assign(items.begin(), items.end());
    push(value);
  }
  void push_global(std::string_view module, std::string_view name) {
    Value* const value = make(Kind::kGlobal);
    value->name = str(std::string(module), " ", std::string(name));
    push(value);
  }
  void push_long(std::string_view bytes) {
    if (bytes.size() > 8) return push_text(Kind::kBytes, bytes);
    uint64_t value =
        bytes.empty() || static_cast<signed char>(bytes.back()) >= 0 ? 0 : ~uint64_t{0};
    for (size_t i = bytes.size(); i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(bytes[i]);
    push_integer(static_cast<int64_t>(value));
  }
  void push_decimal(std::string_view text) {
    if (text == "00" || text == "01") return push_bool(text == "01");  // booleans of protocol 1
    if (text.ends_with('L')) text.remove_suffix(1);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) bad("a number is malformed");
    push_integer(value);
  }

  void extend(Value* list, const Stack& items) {
    const bool holds = list->is(Kind::kList) || list->is(Kind::kSet) || list->is(Kind::kCall);
    if (!holds) bad("elements are added to a value that is not a list");
    if (!list->is(Kind::kCall)) list->items.insert(list->items.end(), items.begin(), items.end());
  }
  void set_items(Value* dict, const Stack& items) {
    if (items.size() % 2 != 0) bad("a key has no value");
    if (dict->is(Kind::kCall)) return;  // an object that is recorded, not made
    if (!dict->is(Kind::kDict)) bad("entries are added to a value that is not a dict");
    dict->items.insert(dict->items.end(), items.begin(), items.end());
  }
  void call(Value* global, Value* arguments) {
    if (!global->is(Kind::kGlobal)) bad("a value that is not a function is called");
    if (!arguments->is(Kind::kTuple)) bad("the arguments of a call are not a tuple");
    // The kinds of dicts, lists and tuples that state dicts are.
    if (global->name == "collections OrderedDict" || global->name == "builtins dict")
      return push_collection(Kind::kDict, *arguments);
    if (global->name == "torch Size" || global->name == "builtins tuple" ||
        global->name == "__builtin__ tuple")
      return push_collection(Kind::kTuple, *arguments);
    if (global->name == "builtins set" || global->name == "__builtin__ set")
      return push_collection(Kind::kSet, *arguments);
    if (!r_.allows_(global->name)) {
      const size_t space = global->name.find(' ');
      fail(ErrorCode::kModel, r_.path_, ": the pickle calls ", global->name.substr(0, space), ".",
           global->name.substr(space + 1),
           ", which is not part of tensors, dicts and lists; nothing was executed");
    }
    push_list(Kind::kCall, {global, arguments});
  }
  /// A dict, tuple or set of a call with no argument or with one that has the elements.
  void push_collection(Kind kind, const Value& arguments) {
    Value* const value = make(kind);
    push(value);
    if (arguments.items.empty()) return;
    const Value& from = *arguments.items[0];
    if (kind != Kind::kDict) {
      value->items = from.items;
      return;
    }
    if (from.is(Kind::kDict)) value->items = from.items;
    if (from.is(Kind::kList))
      for (const Value* pair : from.items) {
        if (pair->items.size() != 2) bad("a dict is made of values that are not pairs");
        value->items.insert(value->items.end(), pair->items.begin(), pair->items.end());
      }
  }
  void build(Value* object, Value* state) {
    // Attributes of collections, such as the versions in `_metadata`, are ignored.
    if (object->is(Kind::kCall)) object->state = state;
  }

  void put(uint64_t key) { memo_[key] = top(); }
  void get(uint64_t key) {
    const auto it = memo_.find(key);
    if (it == memo_.end()) bad("a value is used before it is made");
    push(it->second);
  }
  uint64_t key_of(std::string_view text) {
    uint64_t key = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), key);
    if (error != std::errc() || end != text.data() + text.size()) bad("a key is malformed");
    return key;
  }
  /// A Python string literal without escapes, as protocol 0 writes names.
  std::string_view unquoted(std::string_view text) {
    if (text.size() < 2 || text.front() != text.back() ||
        (text.front() != '\'' && text.front() != '"') || text.find('\\') != text.npos)
      bad("malformed string");
    return text.substr(1, text.size() - 2);
  }

  void step(unsigned char code) {
    switch (code) {
      // --- framing ---
      case 0x80:  // PROTO
        if (number(1) > 5) bad("it has an unknown protocol");
        return;
      case 0x95:  // FRAME
        take(8);
        return;
      // --- constants ---
      case 'N':
        return push(make(Kind::kNone));
      case 0x88:
        return push_bool(true);
      case 0x89:
        return push_bool(false);
      case 'J':
        return push_integer(static_cast<int32_t>(number(4)));
      case 'K':
        return push_integer(static_cast<int64_t>(number(1)));
      case 'M':
        return push_integer(static_cast<int64_t>(number(2)));
      case 'I':
      case 'L':
        return push_decimal(line());
      case 0x8a:
        return push_long(take(number(1)));
      case 0x8b:
        return push_long(take(number(4)));
      case 'F': {
        const std::string_view text = line();
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size()) bad("a number is malformed");
        return push_real(value);
      }
      case 'G': {
        const std::string_view from = take(8);
        uint64_t bits = 0;
        for (const char c : from) bits = bits << 8 | static_cast<unsigned char>(c);
        return push_real(std::bit_cast<double>(bits));
      }
      case 'S':
        return push_text(Kind::kText, unquoted(line()));
      case 'V':
        return push_text(Kind::kText, line());
      case 'X':
        return push_text(Kind::kText, take(number(4)));
      case 0x8c:
        return push_text(Kind::kText, take(number(1)));
      case 0x8d:
        return push_text(Kind::kText, take(number(8)));
      case 'U':
        return push_text(Kind::kText, take(number(1)));
      case 'T':
        return push_text(Kind::kText, take(number(4)));
      case 'C':
        return push_text(Kind::kBytes, take(number(1)));
      case 'B':
        return push_text(Kind::kBytes, take(number(4)));
      case 0x8e:
      case 0x96:
        return push_text(Kind::kBytes, take(number(8)));
      // --- collections ---
      case '(':
        marks_.push_back(stack_.size());
        return;
      case '0':
        if (!marks_.empty() && marks_.back() == stack_.size())
          marks_.pop_back();
        else
          pop();
        return;
      case '1':
        pop_mark();
        return;
      case '2':
        return push(top());
      case ']':
        return push(make(Kind::kList));
      case ')':
        return push(make(Kind::kTuple));
      case '}':
        return push(make(Kind::kDict));
      case 0x8f:
        return push(make(Kind::kSet));
      case 'l':
        return push_list(Kind::kList, pop_mark());
      case 't':
        return push_list(Kind::kTuple, pop_mark());
      case 0x91:
        return push_list(Kind::kSet, pop_mark());
      case 'd': {
        const Stack items = pop_mark();
        push(make(Kind::kDict));
        return set_items(top(), items);
      }
      case 0x85:
      case 0x86:
      case 0x87: {
        Stack items(code - 0x84u);
        for (size_t i = items.size(); i-- > 0;) items[i] = pop();
        return push_list(Kind::kTuple, items);
      }
      case 'a': {
        Value* const item = pop();
        return extend(top(), {item});
      }
      case 'e':
      case 0x90: {
        const Stack items = pop_mark();
        return extend(top(), items);
      }
      case 's': {
        Value* const value = pop();
        Value* const key = pop();
        return set_items(top(), {key, value});
      }
      case 'u': {
        const Stack items = pop_mark();
        return set_items(top(), items);
      }
      // --- the memo ---
      case 'q':
        return put(number(1));
      case 'r':
        return put(number(4));
      case 'p':
        return put(key_of(line()));
      case 0x94:
        return put(memo_.size());
      case 'h':
        return get(number(1));
      case 'j':
        return get(number(4));
      case 'g':
        return get(key_of(line()));
      // --- objects ---
      case 'c': {
        const std::string_view module = line();
        return push_global(module, line());
      }
      case 0x93: {
        const Value* const name = pop();
        const Value* const module = pop();
        if (!name->is(Kind::kText) || !module->is(Kind::kText)) bad("a global has no name");
        return push_global(module->text, name->text);
      }
      case 'R':
      case 0x81: {
        Value* const arguments = pop();
        Value* const global = pop();
        return call(global, arguments);
      }
      case 0x92: {
        pop();  // arguments by name
        Value* const arguments = pop();
        Value* const global = pop();
        return call(global, arguments);
      }
      case 'b': {
        Value* const state = pop();
        return build(top(), state);
      }
      case 'Q': {
        Value* const id = pop();
        push_list(Kind::kPersistent, {id});
        r_.references_.push_back(top());
        return;
      }
      case 'P':
        push_text(Kind::kText, line());
        return step('Q');
      default:
        bad(str("unknown instruction ", static_cast<int>(code)));
    }
  }

  Reader& r_;
  Stack stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Value*> memo_;
};

Reader::Reader(std::span<const std::byte> bytes, std::string path,
               std::function<bool(std::string_view)> allows)
    : bytes_(bytes), path_(std::move(path)), allows_(std::move(allows)) {}

const Value& Reader::read() { return Machine(*this).run(); }

}  // namespace paddle::formats::pickle
