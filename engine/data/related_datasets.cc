#include "data/related_datasets.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "config/overrides.h"

namespace paddle::data {
namespace {

using config::Entry;
using config::Node;
using config::Schema;
using config::Spec;

const std::vector<std::string> kDatasets = {"train", "valid", "test"};

const Node* like_of(const Node* dataset) {
  return dataset && dataset->is_map() ? dataset->find("like") : nullptr;
}

/// A scalar at the place of another value.
Node scalar_at(const Node& place, const std::string& text) {
  Node out = config::make_scalar(text, place.source);
  out.offset = place.offset;
  return out;
}

/// Completes the dataset `name`, which is like another one; `open` are those that wait for it.
void expand_like(Node& section, const std::string& name, std::set<std::string> open) {
  Node* dataset = section.find(name);
  const Node* like = like_of(dataset);
  if (!like) return;
  const std::string other = like->is_scalar() ? like->text : "";
  const auto reject = [&](const std::string& message) {
    throw Error(ErrorCode::kConfig, str("data.", name, ".like: ", message), like->location());
  };
  if (std::find(kDatasets.begin(), kDatasets.end(), other) == kDatasets.end())
    reject(str("expected train, valid or test, found '", other, "'"));
  if (other == name || !open.insert(name).second) reject("a dataset cannot be like itself");
  const Node* base = section.find(other);
  if (!base || !base->is_map()) reject(str("data.", other, " is missing or not a map"));
  expand_like(section, other, open);

  Node out = *section.find(other);
  Node own = *section.find(name);
  own.erase("like");
  const Node place = *like;
  const bool has_shares = out.find("split") || out.find("folds") || own.find("split");
  if (has_shares) out.set("part", scalar_at(place, name));
  out.erase("from");     // of the description of a named dataset: that of this section
  out.erase("weights");  // each sample is evaluated once
  config::merge(out, own);
  *section.find(name) = std::move(out);
}

/// Makes the datasets of `data.split`, the shares of `data.train`.
void expand_split(Node& section) {
  const Node* stated = section.find("split");
  if (!stated) return;
  const Node split = *stated;
  const auto reject = [](const std::string& message, const Node& place) {
    throw Error(ErrorCode::kConfig, "data.split: " + message, place.location());
  };
  if (!split.is_map()) reject("expected shares by name: {train: 0.9, valid: 0.1}", split);
  Node* train = section.find("train");
  if (!train || !train->is_map()) reject("splits data.train, which is not there", split);
  if (train->find("split") || train->find("folds"))
    reject("data.train has shares of its own", split);
  for (const Entry& share : split.entries) {
    const std::string& name = share.key.text;
    if (std::find(kDatasets.begin(), kDatasets.end(), name) == kDatasets.end())
      reject(str("expected train, valid or test, found '", name, "'"), share.key);
    const Node* dataset = section.find(name);
    if (name == "train" || like_of(dataset)) continue;
    if (dataset && !dataset->is_null())
      reject(str("data.", name, " is a dataset of its own; expected {like: train} or none"),
             share.key);
    Node like = config::make_map(share.key.source);
    like.offset = share.key.offset;
    like.set("like", scalar_at(share.key, "train"));
    section.set(name, std::move(like));
  }
  if (!split.find("train")) reject("has no share train", split);
  train = section.find("train");
  train->set("split", split);
  train->set("part", scalar_at(split, "train"));
  section.erase("split");
}

}  // namespace

Spec like_spec() {
  Schema s;
  s.add("like", Spec::word(kDatasets).required().doc("a dataset of this section: all its keys"))
      .accept_others();
  return Spec::map(s);
}

void expand_related(Node& section, config::Diagnostics& diagnostics) {
  diagnostics.guard([&] { expand_split(section); });
  for (const std::string& name : kDatasets)
    diagnostics.guard([&] { expand_like(section, name, {}); });
}

}  // namespace paddle::data
