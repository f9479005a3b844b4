#include "config/document.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace paddle::config {
namespace {

bool all_digits(std::string_view text) {
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
  }
  return !text.empty();
}

/// Takes `1_000` apart; nullopt where an underscore does not stand between two digits.
std::optional<std::string> without_separators(std::string_view text) {
  std::string out;
  const auto digit = [&](size_t i) {
    return i < text.size() && std::isxdigit(static_cast<unsigned char>(text[i]));
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
    } else if (i == 0 || !digit(i - 1) || !digit(i + 1)) {
      return std::nullopt;
    }
  }
  return out;
}

std::optional<int64_t> parse_integer(std::string_view raw) {
  const auto clean = without_separators(raw);
  if (!clean) return std::nullopt;
  std::string_view text = *clean;
  const bool negative = text.starts_with('-');
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0o")) {
    base = text[1] == 'x' ? 16 : 8;
    text.remove_prefix(2);
  }
  if (text.empty() || !std::isxdigit(static_cast<unsigned char>(text[0]))) return std::nullopt;
  uint64_t magnitude = 0;
  const auto [end, status] =
      std::from_chars(text.data(), text.data() + text.size(), magnitude, base);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  constexpr uint64_t kLimit = uint64_t{1} << 63;
  if (magnitude > kLimit || (magnitude == kLimit && !negative)) return std::nullopt;
  return negative ? static_cast<int64_t>(0 - magnitude) : static_cast<int64_t>(magnitude);
}

/// [-+]? ( \. digits | digits ( \. digits* )? ) ( [eE] [-+]? digits )?, or .inf, .nan
std::optional<double> parse_real(std::string_view raw) {
  const auto clean = without_separators(raw);
  if (!clean) return std::nullopt;
  std::string_view text = *clean;
  const double sign = text.starts_with('-') ? -1 : 1;
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (text == ".inf" || text == ".Inf" || text == ".INF") {
    return sign * std::numeric_limits<double>::infinity();
  }
  if (text == ".nan" || text == ".NaN" || text == ".NAN") {
    return std::numeric_limits<double>::quiet_NaN();
  }
  std::string_view mantissa = text.substr(0, text.find_first_of("eE"));
  if (mantissa.size() < text.size()) {
    std::string_view exponent = text.substr(mantissa.size() + 1);
    if (exponent.starts_with('-') || exponent.starts_with('+')) exponent.remove_prefix(1);
    if (!all_digits(exponent)) return std::nullopt;
  }
  const size_t point = mantissa.find('.');
  const std::string_view whole = mantissa.substr(0, point);
  const std::string_view fraction =
      point == std::string_view::npos ? std::string_view() : mantissa.substr(point + 1);
  if (whole.empty() && fraction.empty()) return std::nullopt;
  if ((!whole.empty() && !all_digits(whole)) || (!fraction.empty() && !all_digits(fraction))) {
    return std::nullopt;
  }
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc::result_out_of_range) {
    return std::nullopt;  // 1e999 is a slip, not a number
  }
  if (result.ec != std::errc()) return std::nullopt;
  return sign * value;
}

[[noreturn]] void wrong_type(const Node& node, std::string_view expected) {
  std::string hint;
  if (node.is_scalar() && node.is_quoted()) {
    Node plain = node;
    plain.quote = Node::Quote::kPlain;
    const bool fits = (expected == "an integer" && plain.try_int()) ||
                      (expected == "a number" && plain.try_double()) ||
                      (expected == "true or false" && plain.try_bool());
    if (fits) hint = " in quotes, which is text";
  }
  throw Error(ErrorCode::kConfig, str("expected ", expected, ", found ", node.describe(), hint),
              node.location());
}

}  // namespace

SourceLocation Node::location() const {
  return source ? source->location(offset) : SourceLocation{};
}

const Entry* Node::find_entry(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key.text == key) return &entry;
  }
  return nullptr;
}

const Node* Node::find(std::string_view key) const {
  const Entry* entry = find_entry(key);
  return entry ? &entry->value : nullptr;
}

Node* Node::find(std::string_view key) {
  return const_cast<Node*>(static_cast<const Node*>(this)->find(key));
}

Node& Node::set(std::string_view key, Node value) {
  if (Node* existing = find(key)) {
    *existing = std::move(value);
    return *existing;
  }
  Node name = make_scalar(std::string(key), value.source);
  name.offset = value.offset;
  entries.push_back({std::move(name), std::move(value)});
  return entries.back().value;
}

bool Node::erase(std::string_view key) {
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].key.text == key) {
      entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    }
  }
  return false;
}

std::optional<int64_t> Node::try_int() const {
  if (!is_scalar() || quote != Quote::kPlain) return std::nullopt;
  if (const auto integer = parse_integer(text)) return integer;
  if (text.find_first_of("eE") == std::string::npos) return std::nullopt;
  const auto real = parse_real(text);
  if (!real || *real != std::floor(*real) || std::abs(*real) > 9e15) return std::nullopt;
  return static_cast<int64_t>(*real);
}

std::optional<double> Node::try_double() const {
  if (!is_scalar() || quote != Quote::kPlain) return std::nullopt;
  if (const auto integer = parse_integer(text)) return static_cast<double>(*integer);
  return parse_real(text);
}

std::optional<bool> Node::try_bool() const {
  if (!is_scalar() || quote != Quote::kPlain) return std::nullopt;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

int64_t Node::as_int() const {
  const auto value = try_int();
  if (!value) wrong_type(*this, "an integer");
  return *value;
}

double Node::as_double() const {
  const auto value = try_double();
  if (!value) wrong_type(*this, "a number");
  return *value;
}

bool Node::as_bool() const {
  const auto value = try_bool();
  if (!value) wrong_type(*this, "true or false");
  return *value;
}

const std::string& Node::as_string() const {
  if (!is_scalar()) wrong_type(*this, "text");
  return text;
}

std::string Node::describe() const {
  switch (kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kSequence:
      return "a list";
    case Kind::kMap:
      return "a map";
    case Kind::kScalar:
      break;
  }
  const size_t line_end = text.find('\n');
  if (line_end == std::string::npos && text.size() <= 60) return "'" + text + "'";
  size_t cut = std::min<size_t>(line_end, 40);
  while (cut > 0 && cut < text.size() && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) {
    --cut;
  }
  return "'" + text.substr(0, cut) + "…'";
}

Node make_scalar(std::string text, std::shared_ptr<const SourceText> source, Node::Quote quote) {
  Node node;
  node.kind = Node::Kind::kScalar;
  node.quote = quote;
  node.text = std::move(text);
  node.source = std::move(source);
  return node;
}

Node make_map(std::shared_ptr<const SourceText> source) {
  Node node;
  node.kind = Node::Kind::kMap;
  node.source = std::move(source);
  return node;
}

Node read_document(const std::string& path, Diagnostics& diagnostics) {
  const bool json = path.ends_with(".json");
  auto source = std::make_shared<SourceText>(json ? SourceKind::kJson : SourceKind::kYaml, path,
                                             read_text_file(path));
  return json ? parse_json(source, diagnostics) : parse_yaml(source, diagnostics);
}

Node parse_document(std::string text, const std::string& name) {
  const bool json = name.ends_with(".json");
  auto source = std::make_shared<SourceText>(json ? SourceKind::kJson : SourceKind::kYaml, name,
                                             std::move(text));
  Diagnostics diagnostics;
  Node node = json ? parse_json(source, diagnostics) : parse_yaml(source, diagnostics);
  diagnostics.raise();
  return node;
}

}  // namespace paddle::config
