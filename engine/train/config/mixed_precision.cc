#include "train/config/mixed_precision.h"

#include "ops/core/op.h"

namespace paddle::train {
namespace {

using config::Spec;

/// The operations that a list of `amp` names.
std::set<const Op*> read_operations(const config::Section& amp, const char* key,
                                    config::Diagnostics& diagnostics) {
  std::set<const Op*> out;
  const config::Node& node = amp.at(key);
  const auto read = [&](const config::Node& item) {
    if (const Op* op = find_op(item.text)) {
      out.insert(op);
      return;
    }
    const auto names = op_names();
    diagnostics.add(
        ErrorCode::kConfig,
        str("amp.", key, ": unknown operation '", item.text, "'", did_you_mean(item.text, names)),
        item.location());
  };
  if (node.is_sequence())
    for (const config::Node& item : node.items) read(item);
  else
    read(node);
  return out;
}

}  // namespace

config::Schema amp_schema() {
  config::Schema s;
  s.add("level", Spec::word({"O1", "O2"})
                     .fallback("O1")
                     .doc("O1: products in 16 bits; O2: nearly everything, parameters included"));
  s.add("loss_scale",
        Spec::real()
            .above(0)
            .or_else(Spec::word({"dynamic"}))
            .doc("'dynamic' or a number; default: dynamic for float16, none for bfloat16"));
  s.add("init_loss_scale",
        Spec::real().at_least(1).fallback("65536").doc("the dynamic scale of the first update"));
  s.add("growth_factor", Spec::real().above(1).fallback("2").doc(
                             "of the loss scale after growth_interval updates without overflow"));
  s.add("backoff_factor",
        Spec::real().above(0).below(1).fallback("0.5").doc("of the loss scale after an overflow"));
  s.add("growth_interval", Spec::integer().at_least(1).fallback("2000").doc(
                               "updates in a row without an overflow before the scale grows"));
  s.add("backoff_interval", Spec::integer().at_least(1).fallback("1").doc(
                                "updates in a row with an overflow before it falls"));
  s.add("custom_low", Spec::list(Spec::text())
                          .or_else(Spec::text())
                          .fallback("[]")
                          .doc("operations that compute in 16 bits"));
  s.add("custom_full", Spec::list(Spec::text())
                           .or_else(Spec::text())
                           .fallback("[]")
                           .doc("operations that compute in float32"));
  s.add("full_layers", Spec::list(Spec::text())
                           .or_else(Spec::text())
                           .fallback("[]")
                           .doc("patterns of layers, blocks and ranges that compute in float32"));
  return s;
}

std::optional<MixedPrecision> read_mixed(const config::Section& s,
                                         config::Diagnostics& diagnostics) {
  const std::string& precision = s.text("precision");
  const config::Section amp = s.section("amp");
  MixedPrecision mixed;
  mixed.cast.custom_low = read_operations(amp, "custom_low", diagnostics);
  mixed.cast.custom_full = read_operations(amp, "custom_full", diagnostics);
  mixed.cast.full_layers = amp.texts("full_layers");
  mixed.cast.matched_layers = std::make_shared<std::set<std::string>>();
  for (const Op* op : mixed.cast.custom_full)
    if (mixed.cast.custom_low.contains(op))
      diagnostics.add(ErrorCode::kConfig,
                      str("amp: '", op->name(), "' is in custom_low and in custom_full"),
                      amp.location("custom_full"));
  if (precision.starts_with("float32") || precision.starts_with("float64")) {
    if (amp.text("level") == "O2" || amp.has("loss_scale") || !mixed.cast.custom_low.empty() ||
        !mixed.cast.custom_full.empty() || !mixed.cast.full_layers.empty())
      diagnostics.warn("amp has no effect with precision: " + precision, s.location("amp"));
    return std::nullopt;
  }
  const bool brain = precision.starts_with("b");
  mixed.cast.low = brain ? DType::kBF16 : DType::kF16;
  mixed.cast.all_low = amp.text("level") == "O2";
  const bool given = amp.has("loss_scale");
  if (brain && !given) return mixed;
  optim::LossScaling& scaling = mixed.scaling.emplace();
  scaling.dynamic = !given || amp.at("loss_scale").text == "dynamic";
  scaling.initial = amp.real(scaling.dynamic ? "init_loss_scale" : "loss_scale");
  scaling.growth_factor = amp.real("growth_factor");
  scaling.backoff_factor = amp.real("backoff_factor");
  scaling.growth_interval = amp.integer("growth_interval");
  scaling.backoff_interval = amp.integer("backoff_interval");
  return mixed;
}

void check_full_layers(const MixedPrecision& mixed, const std::vector<std::string>& parameters,
                       const SourceLocation& location) {
  std::vector<std::string> layers;
  for (const std::string& name : parameters) layers.push_back(name.substr(0, name.rfind('.')));
  for (const std::string& pattern : mixed.cast.full_layers)
    if (!mixed.cast.matched_layers->contains(pattern))
      throw Error(ErrorCode::kConfig,
                  str("amp.full_layers: no layer, block or range matches '", pattern, "'",
                      did_you_mean(pattern, layers)),
                  location);
}

}  // namespace paddle::train
