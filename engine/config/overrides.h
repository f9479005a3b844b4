#pragma once
// Changes to a document tree from elsewhere: `key.path=value` of the command line, and the merging
// of a file with the one that it extends.

#include <string>
#include <string_view>
#include <vector>

#include "config/document.h"
#include "config/schema.h"

namespace paddle::config {

/// `optimizer.groups.0.lr=1e-3`, or `data.transforms+=[flip]` to append to a list.
struct Override {
  std::string text;  ///< as given
  std::vector<std::string> path;
  bool append = false;
  Node value;
};

/// Takes an argument apart; its value is plain YAML. kUsage if it is no `key=value`.
Override parse_override(std::string_view argument);
/// Completes a path that begins with a key of exactly one section: `lr=1e-3` is
/// `optimizer.lr=1e-3`. kUsage if several sections have the key; other paths stay as they are.
void complete_path(Override& change, const Schema& schema);
/// True for a word that reads like an override: a key path, then `=`.
bool is_override(std::string_view argument);

/// Puts the value where the path says. A step into a list is an index, or the name of an item: its
/// `name:`, its only key, or its text. Maps on the way that are missing are made. kUsage if the
/// path leads into a scalar or next to a list.
void apply_override(Node& root, const Override& change);

/// Lays `over` on `base`: maps merge, everything else replaces. In `over`, the key `k+` appends to
/// the list `k`, and `k~` is a map whose keys name items of the list `k` to merge into.
/// kConfig where these find no list or no such item.
void merge(Node& base, const Node& over);

/// The item of a list that a word names (see apply_override), or null.
Node* find_item(Node& list, std::string_view word);

/// Reads a configuration and what it `extends:` (a file or a list of files, relative to it),
/// merged. Cycles are kConfig.
Node read_extended(const std::string& path, Diagnostics& diagnostics);

/// Replaces `${a.b}` in plain scalars by what stands at that path, after merging and overrides;
/// a scalar that is nothing else takes the whole value. Cycles and missing paths are collected.
void resolve_references(Node& root, Diagnostics& diagnostics);

/// A path in a document, relative to the document's own folder (the current one for values of the
/// command line), absolute and normalized. kConfig if it is empty.
std::string resolve_path(const Node& scalar);

}  // namespace paddle::config
