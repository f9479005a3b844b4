#include "train/job/resume.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace paddle::train {
namespace {

using config::Node;

struct Leaf {
  std::string path;
  const Node* node;
};

void collect(const Node& node, const std::string& path, std::vector<Leaf>& out) {
  const auto inside = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  if (node.is_map() && !node.entries.empty()) {
    for (const config::Entry& e : node.entries) collect(e.value, inside(e.key.text), out);
  } else if (node.is_sequence() && !node.items.empty()) {
    for (size_t i = 0; i < node.items.size(); ++i)
      collect(node.items[i], inside(std::to_string(i)), out);
  } else {
    out.push_back({path, &node});
  }
}

std::string value_of(const Node& node) {
  if (node.is_map()) return "{}";
  if (node.is_sequence()) return "[]";
  return node.is_null() ? "" : node.text;
}

/// Equal as text or as numbers: `1e-3` and `0.001` are not a change.
bool same_value(const Node& a, const Node& b) {
  if (value_of(a) == value_of(b)) return true;
  const auto x = a.try_double(), y = b.try_double();
  return x && y && *x == *y;
}

bool may_change(const std::string& path) {
  return std::any_of(changeable_keys().begin(), changeable_keys().end(),
                     [&](const std::string& pattern) { return matches_pattern(pattern, path); });
}

/// A model file may lie elsewhere now; its name and variant stay.
bool same_model_file(const ConfigChange& change) {
  const auto name = [](const std::string& path) {
    return std::filesystem::path(path).filename().string();
  };
  return (change.path == "model" || change.path == "model.onnx") &&
         name(change.before) == name(change.after);
}

}  // namespace

const std::vector<std::string>& changeable_keys() {
  static const std::vector<std::string> kKeys = {"name",
                                                 "train.epochs",
                                                 "train.steps",
                                                 "train.threads",
                                                 "train.log_every",
                                                 "train.log_gradient_norm",
                                                 "train.evaluate_every",
                                                 "train.checkpoint_every",
                                                 "train.checkpoint_async",
                                                 "train.keep_checkpoints",
                                                 "train.best",
                                                 "train.best_mode",
                                                 "train.early_stop",
                                                 "train.early_stop.*",
                                                 "train.max_time",
                                                 "init.weights",
                                                 "init.map",
                                                 "metrics",
                                                 "metrics.*",
                                                 "optimizer.lr",
                                                 "optimizer.weight_decay",
                                                 "optimizer.l1_decay",
                                                 "optimizer.base_batch",
                                                 "optimizer.batch_scaling",
                                                 "optimizer.groups",
                                                 "optimizer.groups.*",
                                                 "parallel",
                                                 "parallel.*",
                                                 "schedule.*",
                                                 "serve",
                                                 "serve.*",
                                                 "tune",
                                                 "tune.*",
                                                 "clip",
                                                 "clip.*",
                                                 "compile.kernels",
                                                 "data.workers",
                                                 "data.prefetch_bytes",
                                                 "data.on_bad_sample",
                                                 "data.max_bad_rate",
                                                 "data.nan",
                                                 "data.check_seconds",
                                                 "data.valid",
                                                 "data.valid.*",
                                                 "data.valid_batch_size",
                                                 "data.train.path",
                                                 "data.train.path.*",
                                                 "data.train.fields.*.missing",
                                                 "data.test.fields.*.missing",
                                                 "data.train.annotations",
                                                 "data.train.fields.*.folder",
                                                 "data.train.images",
                                                 "data.train.labels",
                                                 "data.train.files.*",
                                                 "data.train.vocabulary_file",
                                                 "data.train.fields.*.vocabulary_file",
                                                 "data.train.tokenizer",
                                                 "data.train.fields.*.tokenizer"};
  return kKeys;
}

std::vector<ConfigChange> config_changes(const Node& before, const Node& after) {
  std::vector<Leaf> old_leaves, new_leaves;
  collect(before, "", old_leaves);
  collect(after, "", new_leaves);
  std::map<std::string, const Node*> old_values;
  for (const Leaf& leaf : old_leaves) old_values[leaf.path] = leaf.node;
  std::vector<ConfigChange> changes;
  for (const Leaf& leaf : new_leaves) {
    const auto it = old_values.find(leaf.path);
    const bool is_new = it == old_values.end();
    // A key that a later version of the program added defaults to what its absence meant.
    const bool default_of_later_version =
        is_new && leaf.node->source_kind() == config::SourceKind::kDefault;
    if (!default_of_later_version &&
        (is_new ? !value_of(*leaf.node).empty() : !same_value(*it->second, *leaf.node)))
      changes.push_back({leaf.path, is_new ? "" : value_of(*it->second), value_of(*leaf.node),
                         leaf.node->location()});
    if (!is_new) old_values.erase(it);
  }
  for (const Leaf& leaf : old_leaves)
    if (old_values.contains(leaf.path) && !value_of(*leaf.node).empty())
      changes.push_back({leaf.path, value_of(*leaf.node), "", after.location()});
  return changes;
}

std::vector<ConfigChange> check_changes(const Node& before, const Node& after) {
  std::vector<ConfigChange> kept;
  std::vector<Error> rejected;
  for (ConfigChange& change : config_changes(before, after)) {
    if (same_model_file(change)) continue;
    if (may_change(change.path)) {
      kept.push_back(std::move(change));
      continue;
    }
    const auto shown = [](const std::string& text) {
      return text.empty() ? std::string("nothing") : "'" + text + "'";
    };
    rejected.emplace_back(ErrorCode::kConfig,
                          "'" + change.path + "' cannot change on resume: the run began with " +
                              shown(change.before) + ", the config says " + shown(change.after) +
                              "; start a new run with another --output",
                          change.place);
  }
  if (rejected.empty()) return kept;
  Error first = rejected[0];
  for (size_t i = 1; i < std::min<size_t>(rejected.size(), 10); ++i) first.note(rejected[i].what());
  throw first;
}

}  // namespace paddle::train
