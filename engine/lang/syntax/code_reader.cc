// Bodies, chains and YAML values of model files as syntax trees.
#include "lang/syntax/lexer.h"
#include "lang/syntax/parser.h"
#include "lang/syntax/program.h"

namespace paddle::lang {

SourcePosition where_of(const Node& node) { return config::ScalarLocations(node).at(0); }
Name name_of(const Node& node) { return {node.text, where_of(node)}; }

namespace {

class ChainReader {
 public:
  ChainReader(Code& code, Diagnostics& diagnostics) : code_(code), diagnostics_(diagnostics) {}

  void read(const Node& list) {
    code_.is_chain = true;
    if (list.items.empty()) {
      diagnostics_.add(ErrorCode::kConfig, "a chain without an item", list.location());
    }
    for (const Node& item : list.items) {
      diagnostics_.guard([&] { code_.chain.push_back(read_item(item)); });
    }
  }

 private:
  [[noreturn]] static void reject(const Node& node, std::string message) {
    throw Error(ErrorCode::kConfig, std::move(message), node.location());
  }

  Name callee(const Node& node) {
    if (node.text.find('(') != std::string::npos) {
      reject(node, str("a chain item is 'operation' or 'operation: {parameter: value}', found '",
                       node.text, "'"));
    }
    for (const std::string& part : split(node.text, '.')) {
      const bool word = is_identifier(part) || part == "if" || part == "while";
      if (!word) reject(node, str("'", node.text, "' is not a name of an operation or block"));
    }
    return name_of(node);
  }

  ChainItem read_item(const Node& node) {
    ChainItem item;
    item.where = where_of(node);
    if (node.is_scalar()) {
      item.callee = callee(node);
      item.site = add_site(item.callee);
      return item;
    }
    if (!node.is_map()) {
      reject(node, str("a chain item is an operation, found ", node.describe()));
    }
    const Entry* operation = nullptr;
    for (const Entry& entry : node.entries) {
      if (entry.key.text == "from" || entry.key.text == "as") continue;
      if (operation) {
        reject(entry.key,
               str("one operation an item: found '", operation->key.text, "' and '", entry.key.text,
                   "' ('from' and 'as' may be given with it; parameters "
                   "go below the operation)"));
      }
      operation = &entry;
    }
    if (operation) {
      item.callee = callee(operation->key);
      item.site = add_site(item.callee);
      read_arguments(operation->value, item);
    }
    if (const Node* from = node.find("from")) item.from = names(*from, true);
    if (const Node* as = node.find("as")) item.as = names(*as, false);
    if (!operation && item.from.size() != 1 && node.find("from")) {
      reject(*node.find("from"), "'from' by itself takes one value");
    }
    return item;
  }

  int add_site(const Name& callee) {
    code_.sites.push_back({callee.text, callee.where});
    return static_cast<int>(code_.sites.size()) - 1;
  }

  void read_arguments(const Node& value, ChainItem& item) {
    if (value.is_null()) return;
    if (!value.is_map()) {
      item.arguments.push_back({{}, read_yaml_value(value, &code_.sites)});
      return;
    }
    for (const Entry& entry : value.entries) {
      if (!is_identifier(entry.key.text)) {
        const bool cut = entry.value.is_null() && entry.key.text.find(')') != std::string::npos;
        reject(entry.key, str("'", entry.key.text, "' is not the name of a parameter",
                              cut ? " (text with commas needs quotes inside {…})" : ""));
      }
      item.arguments.push_back({name_of(entry.key), read_yaml_value(entry.value, &code_.sites)});
    }
  }

  /// One name or a list of names; `reading` allows `_`.
  std::vector<Name> names(const Node& node, bool reading) {
    std::vector<Name> out;
    const auto add = [&](const Node& item) {
      if (!item.is_scalar() || !is_identifier(item.text)) {
        reject(item, str("expected a value's name, found ", item.describe()));
      }
      if (item.text == "_" && !reading) reject(item, "'_' is the current value, it needs no name");
      out.push_back(name_of(item));
    };
    if (node.is_sequence()) {
      if (node.items.empty()) reject(node, "a list without a name");
      for (const Node& item : node.items) add(item);
    } else {
      add(node);
    }
    return out;
  }

  Code& code_;
  Diagnostics& diagnostics_;
};

}  // namespace

YamlValue read_yaml_value(const Node& node, std::vector<CallSite>* sites) {
  YamlValue out;
  out.node = node;
  if (node.is_scalar()) {
    const size_t before = sites ? sites->size() : 0;
    try {
      out.expression = parse_expression(node, sites);
    } catch (const Error& error) {
      out.not_an_expression = error;
      if (sites) sites->resize(before);
    }
  }
  for (const Node& item : node.items) out.items.push_back(read_yaml_value(item, sites));
  for (const Entry& entry : node.entries) {
    out.entries.push_back({entry.key.text, read_yaml_value(entry.value, sites)});
  }
  return out;
}

Code read_code(const Node& node, Diagnostics& diagnostics) {
  Code code;
  code.where = where_of(node);
  diagnostics.guard([&] {
    if (node.is_sequence()) {
      ChainReader(code, diagnostics).read(node);
    } else if (node.is_scalar()) {
      Body body = parse_body(node);
      code.statements = std::move(body.statements);
      code.sites = std::move(body.sites);
    } else {
      throw Error(ErrorCode::kConfig,
                  str("expected a chain (a list) or a body (text), found ", node.describe()),
                  node.location());
    }
  });
  return code;
}

}  // namespace paddle::lang
