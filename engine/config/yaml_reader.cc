// YAML text to a placed tree. yaml-cpp does the syntax; what it lets pass (duplicate keys, tabs,
// tags, merge keys, cyclic aliases, several documents) is rejected here.
#include <map>
#include <set>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "config/document.h"

namespace paddle::config {
namespace {

using Quote = Node::Quote;

[[noreturn]] void reject(const SourceText& source, size_t offset, std::string message) {
  throw Error(ErrorCode::kConfig, std::move(message), source.location(offset));
}

/// Rejects lines whose leading white space holds a tab, blank lines excepted.
void check_tabs(const SourceText& source) {
  const std::string_view text = source.text();
  for (size_t start = 0; start < text.size();) {
    size_t end = text.find('\n', start);
    if (end == std::string_view::npos) end = text.size();
    const size_t first = text.find_first_not_of(" \t\r", start);
    const size_t tab = text.find('\t', start);
    if (first != std::string_view::npos && first < end && tab < first) {
      reject(source, tab, "a tab in the indentation (use spaces)");
    }
    start = end + 1;
  }
}

/// Skips anchors and tags in front of a node's text.
size_t skip_properties(std::string_view text, size_t i) {
  while (i < text.size() && (text[i] == '&' || text[i] == '!')) {
    i = std::min(text.find_first_of(" \t\r\n", i), text.size());
    while (i < text.size()) {
      i = std::min(text.find_first_not_of(" \t\r\n", i), text.size());
      if (i == text.size() || text[i] != '#') break;
      i = std::min(text.find('\n', i), text.size());
    }
  }
  return i;
}

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::shared_ptr<const SourceText> source, Diagnostics& diagnostics)
      : source_(std::move(source)), diagnostics_(diagnostics) {}

  Node take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node = make(mark, Node::Kind::kNull);
    // An absent value is marked at the next token, which may be lines away: its key says more.
    const std::string_view rest = source_->text().substr(node.offset);
    if (!rest.starts_with('~') && !rest.starts_with("null") && !rest.starts_with("Null") &&
        !rest.starts_with("NULL")) {
      node.offset = last_offset_;
      node.omitted = true;
    }
    add(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      reject(*source_, offset_of(mark), "an alias inside the value that it names");
    }
    count(found->second.second, offset_of(mark));
    if (static_cast<int>(open_.size()) + found->second.first.second > kMaxNesting) {
      reject(*source_, offset_of(mark), "more than 200 levels of nesting");
    }
    height_ = std::max(height_, found->second.first.second + static_cast<int>(open_.size()));
    add(found->second.first.first, YAML::NullAnchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = make(mark, Node::Kind::kScalar);
    check_tag(tag, node.offset);
    if (value.size() > kMaxStringBytes) reject(*source_, node.offset, "a string of over 1 MiB");
    node.text = value;
    node.quote = quote_at(node.offset);
    last_offset_ = node.offset;
    add(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::kSequence);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::kMap);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor;
    size_t nodes_before;
    int height_before;
    std::optional<Node> key;  ///< of a map, once it was read
    std::set<std::string> keys;
    bool duplicate = false;  ///< the value to come belongs to a repeated key
  };

  size_t offset_of(const YAML::Mark& mark) const {
    return mark.pos < 0 ? 0 : std::min(static_cast<size_t>(mark.pos), source_->text().size());
  }

  Node make(const YAML::Mark& mark, Node::Kind kind) {
    Node node;
    node.kind = kind;
    node.source = source_;
    node.offset = static_cast<uint32_t>(skip_properties(source_->text(), offset_of(mark)));
    count(1, node.offset);
    return node;
  }

  void count(size_t nodes, size_t offset) {
    nodes_ += nodes;
    if (nodes_ > kMaxNodes) {
      reject(*source_, offset, "more than a million values, aliases expanded");
    }
  }

  void check_tag(const std::string& tag, size_t offset) const {
    if (!tag.empty() && tag != "?" && tag != "!") {
      reject(*source_, offset, "tags (!…) are not supported: the type follows from the key");
    }
  }

  Quote quote_at(size_t offset) const {
    switch (offset < source_->text().size() ? source_->text()[offset] : '\0') {
      case '\'':
        return Quote::kSingle;
      case '"':
        return Quote::kDouble;
      case '|':
        return Quote::kLiteral;
      case '>':
        return Quote::kFolded;
      default:
        return Quote::kPlain;
    }
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            Node::Kind kind) {
    Node node = make(mark, kind);
    check_tag(tag, node.offset);
    if (static_cast<int>(open_.size()) >= kMaxNesting) {
      reject(*source_, node.offset, "more than 200 levels of nesting");
    }
    last_offset_ = node.offset;
    open_.push_back({std::move(node), anchor, nodes_ - 1, height_, std::nullopt, {}, false});
    height_ = std::max(height_, static_cast<int>(open_.size()));
    if (kind == Node::Kind::kMap || kind == Node::Kind::kSequence) check_not_key();
  }

  /// A list or map that opens where its parent map waits for a key.
  void check_not_key() const {
    if (open_.size() < 2) return;
    const Open& parent = open_[open_.size() - 2];
    if (parent.node.is_map() && !parent.key) {
      const Node& node = open_.back().node;
      reject(*source_, node.offset, str("a key must be plain text, found ", node.describe()));
    }
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    const int height = height_ - static_cast<int>(open_.size());
    height_ = std::max(done.height_before, height_);
    if (done.anchor != YAML::NullAnchor) {
      anchors_[done.anchor] = {{done.node, height}, nodes_ - done.nodes_before};
    }
    if (open_.empty()) height_ = 0;
    add(std::move(done.node), YAML::NullAnchor);
  }

  void add(Node node, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = {{node, 0}, 1};
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.is_sequence()) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.key) {
      add_key(parent, std::move(node));
    } else {
      if (!parent.duplicate) {
        parent.node.entries.push_back({std::move(*parent.key), std::move(node)});
      }
      parent.key.reset();
    }
  }

  void add_key(Open& parent, Node key) {
    if (!key.is_scalar()) {
      reject(*source_, key.offset, str("a key must be plain text, found ", key.describe()));
    }
    if (key.text == "<<" && key.quote == Quote::kPlain) {
      reject(*source_, key.offset, "merge keys (<<) are not part of YAML 1.2: repeat the keys");
    }
    parent.duplicate = !parent.keys.insert(key.text).second;
    if (parent.duplicate) {
      const Entry* first = parent.node.find_entry(key.text);
      const std::string line = first ? str(", first in line ", first->key.location().line) : "";
      diagnostics_.add(ErrorCode::kConfig, str("duplicate key '", key.text, "'", line),
                       key.location());
    }
    parent.key = std::move(key);
  }

  std::shared_ptr<const SourceText> source_;
  Diagnostics& diagnostics_;
  Node root_;
  std::vector<Open> open_;
  /// Finished anchored nodes with their height and number of nodes.
  std::map<YAML::anchor_t, std::pair<std::pair<Node, int>, size_t>> anchors_;
  size_t nodes_ = 0;
  int height_ = 0;  ///< deepest level seen since the outermost open anchor
  size_t last_offset_ = 0;
};

/// The message of yaml-cpp in our words, with a hint for the usual slip: `[` inside a flow map.
std::string syntax_message(const SourceText& source, size_t offset, const std::string& message) {
  std::string out = "YAML syntax: " + message;
  if (message == "illegal map value") {
    return out +
           " (a ':' that does not fit: text with ': ' needs quotes, and what has keys below it "
           "ends in ':')";
  }
  const std::string_view text = source.text();
  const size_t line_start = offset == 0 ? 0 : text.rfind('\n', offset - 1) + 1;
  const std::string_view line = text.substr(line_start, text.find('\n', line_start) - line_start);
  const bool flow = line.find('{') != std::string_view::npos;
  if (flow &&
      (line.find('[') != std::string_view::npos || line.find('(') != std::string_view::npos)) {
    out += " (text with brackets or commas needs quotes inside {…} and […])";
  }
  return out;
}

}  // namespace

Node parse_yaml(std::shared_ptr<const SourceText> source, Diagnostics& diagnostics) {
  if (source->text().starts_with("\xEF\xBB\xBF")) {
    source = std::make_shared<SourceText>(source->kind(), source->name(),
                                          std::string(source->text().substr(3)));
  }
  check_utf8(*source);
  check_tabs(*source);
  TreeBuilder builder(source, diagnostics);
  try {
    std::istringstream stream{std::string(source->text())};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) {
      Node empty;
      empty.source = source;
      return empty;
    }
    Node root = builder.take_root();
    Diagnostics ignored;
    TreeBuilder second(source, ignored);
    if (parser.HandleNextDocument(second)) {
      const Node extra = second.take_root();
      reject(*source, extra.offset, "a second document (---): a file holds one");
    }
    return root;
  } catch (const YAML::Exception& error) {
    const size_t offset = error.mark.pos < 0 ? 0
                                             : std::min<size_t>(static_cast<size_t>(error.mark.pos),
                                                                source->text().size());
    reject(*source, offset, syntax_message(*source, offset, error.msg));
  }
}

}  // namespace paddle::config
