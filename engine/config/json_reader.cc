// A strict JSON reader (RFC 8259) that keeps the place of every value.
#include <set>

#include "base/utf8.h"
#include "config/document.h"

namespace paddle::config {
namespace {

class JsonReader {
 public:
  JsonReader(std::shared_ptr<const SourceText> source, Diagnostics& diagnostics)
      : source_(std::move(source)), text_(source_->text()), diagnostics_(diagnostics) {}

  Node read() {
    skip_space();
    Node root = value(0);
    skip_space();
    if (i_ < text_.size()) reject("expected the end of the file, found " + found());
    return root;
  }

 private:
  [[noreturn]] void reject(const std::string& message) const { reject_at(i_, message); }
  [[noreturn]] void reject_at(size_t offset, const std::string& message) const {
    throw Error(ErrorCode::kConfig, "JSON syntax: " + message, source_->location(offset));
  }

  std::string found() const {
    if (i_ >= text_.size()) return "the end of the file";
    size_t length = 1;
    while (i_ + length < text_.size() &&
           (static_cast<unsigned char>(text_[i_ + length]) & 0xC0) == 0x80) {
      ++length;
    }
    return "'" + std::string(text_.substr(i_, length)) + "'";
  }

  void skip_space() {
    while (i_ < text_.size() && std::string_view(" \t\r\n").find(text_[i_]) != text_.npos) ++i_;
  }

  char peek() const { return i_ < text_.size() ? text_[i_] : '\0'; }

  Node make(Node::Kind kind) {
    if (++nodes_ > kMaxNodes) reject("more than a million values");
    Node node;
    node.kind = kind;
    node.source = source_;
    node.offset = static_cast<uint32_t>(i_);
    return node;
  }

  Node value(int depth) {
    if (depth >= kMaxNesting) reject("more than 200 levels of nesting");
    switch (peek()) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return string();
      default:
        break;
    }
    if (peek() == '-' || (peek() >= '0' && peek() <= '9')) return number();
    for (const std::string_view word : {"true", "false", "null"}) {
      if (!text_.substr(i_).starts_with(word)) continue;
      Node node = make(word == "null" ? Node::Kind::kNull : Node::Kind::kScalar);
      if (word != "null") node.text = word;
      i_ += word.size();
      return node;
    }
    reject("expected a value, found " + found());
  }

  Node object(int depth) {
    Node node = make(Node::Kind::kMap);
    std::set<std::string> keys;
    ++i_;
    skip_space();
    while (peek() != '}' || !node.entries.empty()) {
      if (peek() != '"') reject("expected a key in double quotes, found " + found());
      Node key = string();
      skip_space();
      if (peek() != ':') reject("expected ':' after the key, found " + found());
      ++i_;
      skip_space();
      Node child = value(depth + 1);
      if (keys.insert(key.text).second) {
        node.entries.push_back({std::move(key), std::move(child)});
      } else {
        diagnostics_.add(ErrorCode::kConfig,
                         str("duplicate key '", key.text, "', first in line ",
                             node.find_entry(key.text)->key.location().line),
                         key.location());
      }
      skip_space();
      if (peek() == '}') break;
      if (peek() != ',') reject("expected ',' or '}', found " + found());
      ++i_;
      skip_space();
    }
    ++i_;
    return node;
  }

  Node array(int depth) {
    Node node = make(Node::Kind::kSequence);
    ++i_;
    skip_space();
    while (peek() != ']' || !node.items.empty()) {
      node.items.push_back(value(depth + 1));
      skip_space();
      if (peek() == ']') break;
      if (peek() != ',') reject("expected ',' or ']', found " + found());
      ++i_;
      skip_space();
    }
    ++i_;
    return node;
  }

  void digits() {
    if (peek() < '0' || peek() > '9') reject("expected a digit, found " + found());
    while (peek() >= '0' && peek() <= '9') ++i_;
  }

  Node number() {
    Node node = make(Node::Kind::kScalar);
    const size_t start = i_;
    if (peek() == '-') ++i_;
    if (peek() == '0') {
      ++i_;
      if (peek() >= '0' && peek() <= '9') reject("a number with a leading zero");
    } else {
      digits();
    }
    if (peek() == '.') {
      ++i_;
      digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      ++i_;
      if (peek() == '+' || peek() == '-') ++i_;
      digits();
    }
    node.text = text_.substr(start, i_ - start);
    return node;
  }

  uint32_t hex4() {
    uint32_t code = 0;
    for (int k = 0; k < 4; ++k, ++i_) {
      const char c = peek();
      if (!std::isxdigit(static_cast<unsigned char>(c))) {
        reject("expected four hexadecimal digits after \\u, found " + found());
      }
      code = code * 16 + static_cast<uint32_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return code;
  }

  void escape(std::string& out) {
    const size_t start = i_++;
    const char c = peek();
    ++i_;
    switch (c) {
      case '"':
      case '\\':
      case '/':
        out += c;
        return;
      case 'b':
        out += '\b';
        return;
      case 'f':
        out += '\f';
        return;
      case 'n':
        out += '\n';
        return;
      case 'r':
        out += '\r';
        return;
      case 't':
        out += '\t';
        return;
      case 'u':
        break;
      default:
        reject_at(start, "an unknown escape in a string");
    }
    uint32_t code = hex4();
    if (code >= 0xD800 && code < 0xDC00 && text_.substr(i_).starts_with("\\u")) {
      i_ += 2;
      const uint32_t low = hex4();
      if (low < 0xDC00 || low > 0xDFFF) reject_at(start, "half of a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xD800 && code <= 0xDFFF) {
      reject_at(start, "half of a surrogate pair");
    }
    append_utf8(out, code);
  }

  Node string() {
    Node node = make(Node::Kind::kScalar);
    node.quote = Node::Quote::kDouble;
    const size_t start = i_++;
    while (true) {
      if (i_ >= text_.size()) reject_at(start, "a string without its closing quote");
      const char c = text_[i_];
      if (c == '"') break;
      if (c == '\\') {
        escape(node.text);
      } else if (static_cast<unsigned char>(c) < 0x20) {
        reject("a line end or tab inside a string (write \\n or \\t)");
      } else {
        node.text += c;
        ++i_;
      }
      if (node.text.size() > kMaxStringBytes) reject_at(start, "a string of over 1 MiB");
    }
    ++i_;
    return node;
  }

  std::shared_ptr<const SourceText> source_;
  std::string_view text_;
  Diagnostics& diagnostics_;
  size_t i_ = 0;
  size_t nodes_ = 0;
};

}  // namespace

Node parse_json(std::shared_ptr<const SourceText> source, Diagnostics& diagnostics) {
  check_utf8(*source);
  return JsonReader(source, diagnostics).read();
}

}  // namespace paddle::config
