// Printing of placed trees as YAML (with an optional comment on where each value came from) and
// as JSON.
#include <fmt/core.h>

#include <cstdio>

#include "config/document.h"

namespace paddle::config {
namespace {

using Quote = Node::Quote;

std::string double_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          const std::string buffer = fmt::format("\\u{:04x}", static_cast<unsigned>(c));
          out += buffer;
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

bool is_null_word(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

/// Whether the text reads back as itself when it stands plain, inside flow lists too.
bool is_plain_safe(std::string_view text) {
  if (is_null_word(text) || text == "<<" || text == "---" || text == "...") return false;
  if (std::string_view(" -?:,[]{}#&*!|>'\"%@`").find(text.front()) != text.npos) {
    const bool negative = text.front() == '-' && text.size() > 1 &&
                          (std::isdigit(static_cast<unsigned char>(text[1])) || text[1] == '.');
    if (!negative) return false;
  }
  if (text.back() == ' ' || text.back() == ':') return false;
  if (text.find_first_of("\n\t\r,[]{}") != text.npos) return false;
  return text.find(": ") == text.npos && text.find(" #") == text.npos;
}

/// Whether a body can be printed as a `|` block.
bool is_block_safe(std::string_view text) {
  if (text.find('\n') == text.npos || text.front() == ' ' || text.front() == '\n') return false;
  if (text.find_first_of("\t\r") != text.npos) return false;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    if (end > start && text[end - 1] == ' ' && text.find_first_not_of(' ', start) >= end) {
      return false;  // a line of spaces only
    }
    start = end + 1;
  }
  return true;
}

std::string scalar_text(const Node& node) {
  const bool number_like = !node.is_quoted() ? false : [&] {
    Node plain = node;
    plain.quote = Quote::kPlain;
    return plain.try_double() || plain.try_bool();
  }();
  if (!is_plain_safe(node.text) || number_like) return double_quoted(node.text);
  // Quotes that a person wrote may carry meaning (text instead of an expression in `params`).
  return node.is_quoted() ? double_quoted(node.text) : node.text;
}

class YamlPrinter {
 public:
  explicit YamlPrinter(const DumpOptions& options) : options_(options) {}

  std::string print(const Node& node) {
    if (node.is_map() && !node.entries.empty()) {
      map(node, 0, false);
    } else if (node.is_sequence() && !node.items.empty()) {
      sequence(node, 0);
    } else {
      out_ += inline_text(node) + "\n";
    }
    return std::move(out_);
  }

 private:
  static bool is_short(const Node& node) {
    if (node.is_sequence()) {
      size_t width = 0;
      for (const Node& item : node.items) {
        if (item.is_map() || item.is_sequence() || item.text.find('\n') != std::string::npos) {
          return false;
        }
        width += item.text.size() + 2;
      }
      return width <= 72;
    }
    return node.is_map() ? node.entries.empty() : true;
  }

  static std::string inline_text(const Node& node) {
    switch (node.kind) {
      case Node::Kind::kNull:
        return "null";
      case Node::Kind::kScalar:
        return scalar_text(node);
      case Node::Kind::kMap:
        return "{}";
      case Node::Kind::kSequence:
        break;
    }
    std::vector<std::string> parts;
    for (const Node& item : node.items) parts.push_back(inline_text(item));
    return "[" + join(parts, ", ") + "]";
  }

  std::string origin(const Node& node) const {
    if (!options_.origin) return "";
    SourceLocation place = node.location();
    place.column = 0;
    return "  # " + (place.text().empty() ? std::string("default") : place.text());
  }

  /// Everything after "key:" or "-", at the indentation of the key or dash.
  void value(const Node& node, int indent, bool after_dash) {
    if (is_short(node)) {
      if (node.is_scalar() && is_block_safe(node.text)) return block(node, indent);
      out_ += " " + inline_text(node) + origin(node) + "\n";
    } else if (node.is_map()) {
      if (after_dash) {
        out_ += ' ';
        map(node, indent + 2, true);
      } else {
        out_ += '\n';
        map(node, indent + 2, false);
      }
    } else {
      out_ += '\n';
      sequence(node, indent + 2);
    }
  }

  void block(const Node& node, int indent) {
    const std::string_view text = node.text;
    const size_t ends = text.size() - text.find_last_not_of('\n') - 1;
    out_ += ends == 0 ? " |-" : ends == 1 ? " |" : " |+";
    out_ += origin(node) + "\n";
    const std::string_view body = ends == 0 ? text : text.substr(0, text.size() - 1);
    for (const std::string& line : split(body, '\n')) {
      if (!line.empty()) out_ += std::string(static_cast<size_t>(indent) + 2, ' ') + line;
      out_ += '\n';
    }
  }

  void map(const Node& node, int indent, bool first_in_place) {
    for (const Entry& entry : node.entries) {
      if (!first_in_place) out_ += std::string(static_cast<size_t>(indent), ' ');
      first_in_place = false;
      Node key = entry.key;
      const bool safe = key.text.find('(') == std::string::npos
                            ? is_plain_safe(key.text)
                            : key.text.find(": ") == std::string::npos &&
                                  key.text.find(" #") == std::string::npos;
      out_ += safe ? key.text : double_quoted(key.text);
      out_ += ':';
      value(entry.value, indent, false);
    }
  }

  void sequence(const Node& node, int indent) {
    for (const Node& item : node.items) {
      out_ += std::string(static_cast<size_t>(indent), ' ') + "-";
      value(item, indent, true);
    }
  }

  DumpOptions options_;
  std::string out_;
};

void print_json(const Node& node, std::string& out) {
  switch (node.kind) {
    case Node::Kind::kNull:
      out += "null";
      return;
    case Node::Kind::kScalar:
      if (const auto truth = node.try_bool()) {
        out += *truth ? "true" : "false";
      } else if (const auto integer = node.try_int()) {
        out += std::to_string(*integer);
      } else if (const auto real = node.try_double(); real && *real - *real == 0) {
        out += format_double(*real);
      } else {
        out += double_quoted(node.text);
      }
      return;
    case Node::Kind::kSequence:
      out += '[';
      for (size_t i = 0; i < node.items.size(); ++i) {
        if (i) out += ", ";
        print_json(node.items[i], out);
      }
      out += ']';
      return;
    case Node::Kind::kMap:
      out += '{';
      for (size_t i = 0; i < node.entries.size(); ++i) {
        if (i) out += ", ";
        out += double_quoted(node.entries[i].key.text) + ": ";
        print_json(node.entries[i].value, out);
      }
      out += '}';
      return;
  }
}

}  // namespace

std::string dump_yaml(const Node& node, const DumpOptions& options) {
  return YamlPrinter(options).print(node);
}

std::string dump_json(const Node& node) {
  std::string out;
  print_json(node, out);
  return out;
}

}  // namespace paddle::config
