#include "quant_common/quant_config.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "config/overrides.h"
#include "config/sections.h"

namespace paddle::quant {
namespace {

using config::Schema;
using config::Section;
using config::Spec;

/// "0.5%" or "0.005".
double parse_share(const std::string& text, const std::string& what) {
  const bool percent = text.ends_with('%');
  const std::string number = percent ? text.substr(0, text.size() - 1) : text;
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0' || !(value >= 0))
    fail(ErrorCode::kConfig, what, ": expected a share such as 0.5%, found '", text, "'");
  return percent ? value / 100 : value;
}

/// A limit such as 0.5%, 0.1, {drop: 0.5%} or {rise: 2%}.
MetricLimit read_limit(const config::Entry& entry) {
  MetricLimit out;
  out.metric = entry.key.text;
  out.where = entry.value.location();
  const std::string what = "quant.accept.metrics." + out.metric;
  std::string text;
  if (entry.value.is_map()) {
    const Section s(entry.value);
    if (s.has("drop") == s.has("rise"))
      throw Error(ErrorCode::kConfig, what + ": expected one of 'drop' and 'rise'", out.where);
    out.worse = s.has("drop") ? MetricLimit::Worse::kFall : MetricLimit::Worse::kRise;
    text = s.text(s.has("drop") ? "drop" : "rise");
  } else {
    text = entry.value.as_string();
  }
  out.percent = text.ends_with('%');
  try {
    out.amount = parse_share(text, what);
  } catch (const Error& e) {
    throw Error(e.code(), e.message(), out.where);
  }
  return out;
}

void read_accept(const Section& s, Acceptance& out, config::Diagnostics& diagnostics) {
  if (s.has("accuracy"))
    diagnostics.guard([&] { out.drop = parse_share(s.text("accuracy"), "quant.accept.accuracy"); });
  for (const config::Entry& entry : s.at("metrics").entries)
    diagnostics.guard([&] { out.metrics.push_back(read_limit(entry)); });
  if (s.has("confidence")) {
    out.confidence = s.real("confidence");
    if (!s.has("accuracy") && s.at("metrics").entries.empty())
      diagnostics.add(ErrorCode::kConfig,
                      "quant.accept.confidence: has no effect without 'accuracy' or 'metrics'",
                      s.at("confidence").location());
  }
  if (s.has("sqnr_db")) out.sqnr_db = s.real("sqnr_db");
  if (s.has("size")) out.size_ratio = s.real("size");
}

LayerFormat format_of(const std::string& scheme) {
  LayerFormat out;
  if (scheme == "float16") out.half = DType::kF16;
  if (scheme == "bf16") out.half = DType::kBF16;
  if (out.half) out.activations = ActivationMode::kNone;
  if (scheme == "int8_dynamic") out.activations = ActivationMode::kDynamic;
  if (scheme == "int8_weights" || scheme == "int4_weights") out.activations = ActivationMode::kNone;
  if (scheme == "int4_weights") {
    out.weights.bits = 4;
    out.weights.per = Granularity::kGroup;
    out.weights.search = true;
  }
  return out;
}

WeightFormat read_weights(const Section& s, WeightFormat out) {
  if (s.has("dtype")) {
    const int bits = s.text("dtype") == "int4" ? 4 : 8;
    if (bits != out.storage_bits()) {
      out.per = bits == 4 ? Granularity::kGroup : Granularity::kChannel;
      out.search = bits == 4;
      out.bits = bits;
    }
  }
  if (s.has("symmetric")) out.symmetric = s.boolean("symmetric");
  if (s.has("per"))
    out.per = s.text("per") == "tensor"    ? Granularity::kTensor
              : s.text("per") == "channel" ? Granularity::kChannel
                                           : Granularity::kGroup;
  if (s.has("group")) {
    out.group = s.integer("group");
    out.per = Granularity::kGroup;
  }
  if (s.has("scale")) out.search = s.text("scale") == "mse";
  return out;
}

Spec output_spec() { return Spec::path().doc("folder, or a file that ends in .onnx"); }

}  // namespace

void register_keys() {
  config::register_keys({.owner = "paddle-quant", .schema = []() -> const Schema& {
                           static const Schema schema = Schema().add("output", output_spec());
                           return schema;
                         }});
}

QuantConfig read_quant_config(const std::string& file, const std::vector<std::string>& overrides) {
  config::Diagnostics diagnostics;
  config::Node document = file.empty() ? config::make_map(std::make_shared<config::SourceText>(
                                             config::SourceKind::kDefault, "default", ""))
                                       : config::read_extended(file, diagnostics);
  for (const std::string& text : overrides)
    config::apply_override(document, config::parse_override(text));
  config::resolve_references(document, diagnostics);
  Schema root;
  root.add("extends", Spec::any().doc("a config that this one completes"));
  root.add("quant", Spec::map(quant_schema()).fallback("{}"));
  root.add("output", output_spec());
  config::check_other_keys(document, {"extends", "quant", "output"}, diagnostics);
  if (document.is_map())
    for (const config::Entry& entry : document.entries)
      if (!root.find(entry.key.text)) root.accept(entry.key.text);
  const bool has_data = document.find("data") != nullptr;
  const bool describes_run = has_data && document.find("metrics") && document.find("model");
  root.resolve(document, "", diagnostics);
  diagnostics.raise();

  QuantConfig out = read_quant_section(Section(document).section("quant"), diagnostics);
  out.document = document;
  if (describes_run) out.run_config = file;
  const auto settle_data = [&](std::string& text, const char* part) {
    if (has_data && (text == "train" || text == "valid" || text == "test"))
      text = file + ":" + text;
    if (has_data && text.empty() && document.find("data")->find(part)) text = file + ":" + part;
  };
  settle_data(out.data, "train");
  settle_data(out.eval_data, "valid");
  if (Section(out.document).has("output"))
    out.output = config::resolve_path(Section(out.document).at("output"));
  diagnostics.raise();
  return out;
}

QuantConfig read_quant_section(const Section& s, config::Diagnostics& diagnostics) {
  QuantConfig out;
  out.scheme = s.text("scheme");
  out.target = s.text("target");
  out.format = format_of(out.scheme);
  if (out.target.ends_with("-avx2") && out.format.weights.bits == 8) out.format.weights.bits = 7;
  out.format.weights = read_weights(s.section("weights"), out.format.weights);
  if (const Section activations = s.section("activations"); activations.has("when")) {
    const std::string when = activations.text("when");
    if (out.format.activations == ActivationMode::kNone)
      diagnostics.add(ErrorCode::kConfig,
                      "quant.activations: the scheme " + out.scheme + " keeps them float",
                      activations.at("when").location());
    out.format.activations = when == "static"    ? ActivationMode::kStatic
                             : when == "dynamic" ? ActivationMode::kDynamic
                                                 : ActivationMode::kToken;
  }
  out.products = s.boolean("products");
  const Section calibrate = s.section("calibrate");
  if (calibrate.has("data")) out.data = calibrate.text("data");
  if (s.has("evaluate")) out.eval_data = s.text("evaluate");
  out.samples = calibrate.integer("samples");
  out.batch = calibrate.integer("batch_size");
  out.observer = calibrate.text("observer");
  out.range = parse_range_method(out.observer);
  out.percentile = calibrate.real("percentile");
  if (calibrate.has("statistics"))
    out.statistics = config::resolve_path(calibrate.at("statistics"));
  for (const Section& rule : s.sections("layers")) {
    LayerRule each;
    each.match = rule.texts("match");
    if (rule.has("op")) each.op = rule.text("op");
    const auto is_given = [&](const char* key) {
      const config::Node* node = rule.node().find(key);
      return node && !node->is_null() && node->source_kind() != config::SourceKind::kDefault;
    };
    each.keep_float = is_given("keep");
    if (is_given("weights"))
      each.weights = read_weights(rule.section("weights"), out.format.weights);
    each.where = rule.node().location();
    if (each.keep_float == each.weights.has_value())
      diagnostics.add(ErrorCode::kConfig, "quant.layers: give one of 'keep' and 'weights'",
                      each.where);
    out.layers.push_back(std::move(each));
  }
  for (const Section& step : s.sections("methods")) {
    MethodStep each;
    each.name = step.text("name");
    each.where = step.node().location();
    if (each.name == "smooth") each.alpha = step.real("alpha");
    if (each.name == "gptq") each.damp = step.real("damp");
    if (each.name == "smooth" && out.format.activations == ActivationMode::kNone)
      diagnostics.add(
          ErrorCode::kConfig,
          "quant.methods: smooth is for quantized activations; " + out.scheme + " keeps them float",
          each.where);
    if (out.format.half)
      diagnostics.add(ErrorCode::kConfig,
                      "quant.methods: " + each.name + " is for integers, not for " + out.scheme,
                      each.where);
    out.methods.push_back(each);
  }
  out.measure = s.boolean("measure") && out.target.starts_with("cpu");
  const Section accept = s.section("accept");
  read_accept(accept, out.accept, diagnostics);
  const Section latency = accept.section("latency");
  if (accept.has("speedup") && latency.has("speedup"))
    diagnostics.add(ErrorCode::kConfig, "quant.accept: give one of 'speedup' and 'latency.speedup'",
                    latency.at("speedup").location());
  if (latency.has("speedup"))
    out.accept.speedup = latency.real("speedup");
  else if (accept.has("speedup"))
    out.accept.speedup = accept.real("speedup");
  else if (out.measure && out.format.activations != ActivationMode::kNone)
    out.accept.speedup = 1;
  if (s.has("train")) {
    const Section training = s.section("train");
    if (out.format.half)
      diagnostics.add(ErrorCode::kConfig,
                      "quant.train: is for integers, not for " + out.scheme +
                          " (precision: float16 trains in 16 bits)",
                      training.node().location());
    out.training =
        QuantTraining{training.integer("observe"), training.boolean("learned_scales"), {}};
    if (training.has("freeze_norms")) out.training->freeze_norms = training.integer("freeze_norms");
  }
  return out;
}

}  // namespace paddle::quant
