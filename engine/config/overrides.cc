#include "config/overrides.h"

#include <algorithm>
#include <filesystem>

namespace paddle::config {
namespace {

std::string joined(const std::vector<std::string>& path, size_t count) {
  return join(std::span(path).first(count), ".");
}

/// Adds `over`'s items to the list `base` (a null base is an empty list).
void append_items(Node& base, const Node& over, std::string_view key) {
  if (base.is_null()) {
    base.kind = Node::Kind::kSequence;
    base.source = over.source;
    base.offset = over.offset;
  }
  if (!base.is_sequence()) {
    throw Error(ErrorCode::kConfig,
                str("'", key, "' appends to a list, but found ", base.describe()), over.location());
  }
  if (over.is_sequence()) {
    base.items.insert(base.items.end(), over.items.begin(), over.items.end());
  } else {
    base.items.push_back(over);
  }
}

void patch_items(Node& list, const Node& changes, std::string_view key) {
  if (!list.is_sequence() || !changes.is_map()) {
    throw Error(ErrorCode::kConfig,
                str("'", key,
                    "' changes items of a list by name: it needs a map, and a list to "
                    "change"),
                changes.location());
  }
  for (const Entry& change : changes.entries) {
    Node* item = find_item(list, change.key.text);
    if (!item) {
      throw Error(ErrorCode::kConfig, str("the list has no item '", change.key.text, "'"),
                  change.key.location());
    }
    merge(*item, change.value);
  }
}

/// Depth and size of what a file extends are bounded by this many files.
constexpr size_t kMaxExtends = 100;

Node read_one(const std::string& path, std::vector<std::string>& open, size_t& files,
              Diagnostics& diagnostics) {
  if (++files > kMaxExtends) {
    throw Error(ErrorCode::kConfig, "more than 100 files extend each other", {path, 0, 0});
  }
  Node own = read_document(path, diagnostics);
  Node* extends = own.find("extends");
  if (!extends) return own;
  std::vector<Node> bases;
  if (extends->is_scalar()) bases.push_back(*extends);
  if (extends->is_sequence()) bases = extends->items;
  if (bases.empty()) {
    throw Error(ErrorCode::kConfig,
                str("'extends' needs a file or a list of files, found ", extends->describe()),
                extends->location());
  }
  Node result = make_map(own.source);
  open.push_back(std::filesystem::absolute(path).lexically_normal().string());
  for (const Node& base : bases) {
    if (!base.is_scalar()) {
      throw Error(ErrorCode::kConfig, str("'extends' needs files, found ", base.describe()),
                  base.location());
    }
    const std::string file = resolve_path(base);
    if (std::find(open.begin(), open.end(), file) != open.end()) {
      throw Error(ErrorCode::kConfig, str("'", base.text, "' extends itself"), base.location());
    }
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) {
      throw Error(ErrorCode::kConfig, str("no such file: ", file), base.location());
    }
    merge(result, read_one(file, open, files, diagnostics));
  }
  open.pop_back();
  own.erase("extends");
  merge(result, own);
  return result;
}

class References {
 public:
  References(Node& root, Diagnostics& diagnostics) : root_(root), diagnostics_(diagnostics) {}

  void resolve(Node& node, int depth = 0) {
    if (depth > kMaxNesting) {
      throw Error(ErrorCode::kConfig, "more than 200 levels of nesting", node.location());
    }
    for (Node& item : node.items) resolve(item, depth + 1);
    for (Entry& entry : node.entries) resolve(entry.value, depth + 1);
    if (!node.is_scalar() || node.quote == Node::Quote::kLiteral) return;
    if (node.text.find("${") == std::string::npos) return;
    const Node before = node;
    diagnostics_.guard([&] { replace(node, before, depth); });
  }

 private:
  void replace(Node& node, const Node& before, int depth) {
    std::string out;
    size_t i = 0;
    while (true) {
      const size_t start = node.text.find("${", i);
      if (start == std::string::npos) break;
      const size_t end = node.text.find('}', start);
      if (end == std::string::npos) {
        throw Error(ErrorCode::kConfig, "'${' without its '}'", before.location());
      }
      const std::string path = node.text.substr(start + 2, end - start - 2);
      const Node target = lookup(path, before, depth);
      if (start == 0 && end + 1 == node.text.size()) {
        node = target;
        return;
      }
      if (!target.is_scalar()) {
        throw Error(
            ErrorCode::kConfig,
            str("'${", path, "}' inside a text needs a single value, found ", target.describe()),
            before.location());
      }
      out += node.text.substr(i, start - i) + target.text;
      if (out.size() > kMaxStringBytes) {
        throw Error(ErrorCode::kConfig, "a string of over 1 MiB", before.location());
      }
      i = end + 1;
    }
    node.text = out + node.text.substr(i);
  }

  Node lookup(const std::string& path, const Node& where, int depth) {
    if (std::find(open_.begin(), open_.end(), path) != open_.end()) {
      throw Error(ErrorCode::kConfig, str("'${", path, "}' refers to itself"), where.location());
    }
    Node* node = &root_;
    for (const std::string& step : split(path, '.')) {
      Node* next = node->is_sequence() ? find_item(*node, step) : node->find(step);
      if (!next) {
        std::vector<std::string> keys;
        for (const Entry& entry : node->entries) keys.push_back(entry.key.text);
        throw Error(ErrorCode::kConfig,
                    str("'${", path, "}': there is no '", step, "'", did_you_mean(step, keys)),
                    where.location());
      }
      node = next;
    }
    Node copy = *node;
    count_ += size(copy);
    if (count_ > kMaxNodes) {
      throw Error(ErrorCode::kConfig, "references expand to more than a million values",
                  where.location());
    }
    open_.push_back(path);
    resolve(copy, depth + 1);
    open_.pop_back();
    return copy;
  }

  static size_t size(const Node& node) {
    size_t total = 1;
    for (const Node& item : node.items) total += size(item);
    for (const Entry& entry : node.entries) total += size(entry.value);
    return total;
  }

  Node& root_;
  Diagnostics& diagnostics_;
  std::vector<std::string> open_;
  size_t count_ = 0;
};

}  // namespace

void complete_path(Override& change, const Schema& schema) {
  const std::string first = change.path.front();
  if (schema.find(first)) return;
  const std::vector<std::string> sections = schema.sections_with(first);
  if (sections.size() > 1) {
    std::vector<std::string> whole;
    for (const std::string& section : sections) whole.push_back(section + "." + first);
    fail(ErrorCode::kUsage, "'", change.text, "': '", first, "' is ambiguous: ", join(whole, ", "));
  }
  if (sections.size() == 1) change.path.insert(change.path.begin(), sections[0]);
}

bool is_override(std::string_view argument) {
  const size_t equals = argument.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  const std::string_view key = argument.substr(0, equals);
  return key.front() != '-' && key.find_first_of("/\\ \t") == std::string_view::npos;
}

Override parse_override(std::string_view argument) {
  Override out;
  out.text = argument;
  const size_t equals = argument.find('=');
  if (!is_override(argument)) {
    fail(ErrorCode::kUsage, "'", argument, "': expected key.path=value");
  }
  std::string_view key = argument.substr(0, equals);
  if (key.ends_with('+')) {
    out.append = true;
    key.remove_suffix(1);
  }
  out.path = split(key, '.');
  for (const std::string& step : out.path) {
    if (step.empty()) fail(ErrorCode::kUsage, "'", argument, "': an empty key in the path");
  }
  auto source = std::make_shared<SourceText>(SourceKind::kCommandLine, "command line",
                                             std::string(argument.substr(equals + 1)));
  Diagnostics diagnostics;
  try {
    out.value = parse_yaml(source, diagnostics);
    diagnostics.raise();
    out.value.omitted = out.value.is_null() && trim(source->text()).empty();
  } catch (const Error& error) {
    fail(ErrorCode::kUsage, "'", argument, "': ", error.message());
  }
  return out;
}

Node* find_item(Node& list, std::string_view word) {
  if (!word.empty() &&
      std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    if (word.size() > 9) return nullptr;
    const size_t index = std::stoul(std::string(word));
    return index < list.items.size() ? &list.items[index] : nullptr;
  }
  for (Node& item : list.items) {
    if (item.is_scalar() && item.text == word) return &item;
    const Node* name = item.find("name");
    if (name && name->is_scalar() && name->text == word) return &item;
  }
  for (Node& item : list.items) {
    if (item.is_map() && item.entries.size() == 1 && item.entries[0].key.text == word) {
      return &item.entries[0].value;
    }
  }
  return nullptr;
}

void apply_override(Node& root, const Override& change) {
  Node* node = &root;
  for (size_t i = 0; i < change.path.size(); ++i) {
    const std::string& step = change.path[i];
    if (node->is_sequence()) {
      Node* item = find_item(*node, step);
      if (!item) {
        fail(ErrorCode::kUsage, "'", change.text, "': '", joined(change.path, i), "' is a list of ",
             node->items.size(), " without an item '", step, "'");
      }
      node = item;
      continue;
    }
    if (node->is_null()) *node = make_map(change.value.source);
    if (!node->is_map()) {
      fail(ErrorCode::kUsage, "'", change.text, "': '", joined(change.path, i), "' is ",
           node->describe(), ", it has no '", step, "'");
    }
    Node* next = node->find(step);
    if (!next) {
      Node fresh;
      fresh.source = change.value.source;
      next = &node->set(step, std::move(fresh));
    }
    node = next;
  }
  if (!change.append) {
    *node = change.value;
    return;
  }
  try {
    append_items(*node, change.value, change.path.back() + "+");
  } catch (const Error& error) {
    fail(ErrorCode::kUsage, "'", change.text, "': ", error.message());
  }
}

namespace {

/// Whether two maps describe things of different kinds, such as two optimizers: then the keys of
/// one mean nothing to the other. A model's name says nothing of its kind.
bool differs_in_kind(const std::string& key, const Node& base, const Node& over) {
  if (key == "model") return false;
  for (const char* word : {"name", "kind"}) {
    const Node *before = base.find(word), *after = over.find(word);
    if (before && after && before->is_scalar() && after->is_scalar() && before->text != after->text)
      return true;
  }
  return false;
}

}  // namespace

void merge(Node& base, const Node& over) {
  if (!base.is_map() || !over.is_map()) {
    base = over;
    return;
  }
  for (const Entry& entry : over.entries) {
    const std::string& key = entry.key.text;
    const char mark = key.size() > 1 ? key.back() : '\0';
    const std::string plain = key.substr(0, key.size() - (mark == '+' || mark == '~' ? 1 : 0));
    Node* existing = base.find(plain);
    if (mark == '+') {
      if (existing) {
        append_items(*existing, entry.value, key);
      } else {
        Node list;
        append_items(list, entry.value, key);
        base.set(plain, std::move(list));
      }
    } else if (mark == '~') {
      if (!existing) {
        throw Error(ErrorCode::kConfig, str("no such list: '", plain, "' to change"),
                    entry.key.location());
      }
      patch_items(*existing, entry.value, key);
    } else if (existing) {
      if (existing->is_map() && entry.value.is_map() &&
          differs_in_kind(plain, *existing, entry.value)) {
        *existing = make_map(entry.value.source);
        existing->offset = entry.value.offset;
      }
      merge(*existing, entry.value);
    } else {
      base.entries.push_back(entry);
      // A new value may itself hold `k+` keys; they start from nothing.
      if (entry.value.is_map()) {
        Node clean = make_map(entry.value.source);
        clean.offset = entry.value.offset;
        merge(clean, entry.value);
        base.entries.back().value = std::move(clean);
      }
    }
  }
}

Node read_extended(const std::string& path, Diagnostics& diagnostics) {
  std::vector<std::string> open;
  size_t files = 0;
  return read_one(path, open, files, diagnostics);
}

void resolve_references(Node& root, Diagnostics& diagnostics) {
  References references(root, diagnostics);
  diagnostics.guard([&] { references.resolve(root); });
}

std::string resolve_path(const Node& scalar) {
  namespace fs = std::filesystem;
  if (scalar.text.empty()) throw Error(ErrorCode::kConfig, "an empty path", scalar.location());
  const fs::path path(scalar.text);
  fs::path folder;
  const SourceKind kind = scalar.source_kind();
  if (kind == SourceKind::kYaml || kind == SourceKind::kJson) {
    folder = fs::path(scalar.source->name()).parent_path();
  }
  return fs::absolute(folder / path).lexically_normal().string();
}

}  // namespace paddle::config
