// The schema of the section `quant:`, apart from its reading: programs that only check the section
// need nothing else of the room.

#include "config/sections.h"
#include "quant_common/quant_config.h"

namespace paddle::quant {
namespace {

using config::Schema;
using config::Spec;

constexpr int64_t kMaxSamples = int64_t{1} << 32, kMaxBatch = int64_t{1} << 20;

Schema weights_schema() {
  Schema s;
  s.add("dtype", Spec::word({"int8", "int4"}).doc("default: as the scheme says"));
  s.add("symmetric", Spec::boolean().doc("no zero points; default: true"));
  s.add("per", Spec::word({"tensor", "channel", "group"})
                   .doc("what shares a scale; default: group for int4, else channel"));
  s.add("group", Spec::integer().at_least(16).at_most(1 << 16).doc(
                     "features that share a scale; default: 128"));
  s.add("scale", Spec::word({"range", "mse"})
                     .doc("range: of all weights; mse: of least squared error; default: mse for "
                          "int4, else range"));
  return s;
}

Schema activations_schema() {
  Schema s;
  s.add("when", Spec::word({"static", "dynamic", "token"})
                    .doc("static: ranges from calibration; dynamic: the range of each run; token: "
                         "that of each row of features; default: as the scheme says"));
  return s;
}

Schema rule_schema() {
  Schema s;
  s.add("match", Spec::list(Spec::text())
                     .or_else(Spec::text())
                     .fallback("[]")
                     .doc("patterns of layer names; none: all layers"));
  s.add("op", Spec::text().doc("only layers of this operation"));
  s.add("keep", Spec::word({"float32"}).doc("these layers stay float"));
  s.add("weights", Spec::map(weights_schema()).optional().doc("another format of the weights"));
  return s;
}

Schema method_schema(bool has_alpha, bool has_damp) {
  Schema s;
  if (has_alpha)
    s.add("alpha", Spec::real().at_least(0).at_most(1).fallback("0.5").doc(
                       "share of the ranges that moves from activations to weights"));
  if (has_damp)
    s.add("damp", Spec::real().above(0).at_most(1).fallback("0.01").doc(
                      "added to the diagonal of second moments, as a share of its mean"));
  return s;
}

Schema calibrate_schema() {
  Schema s;
  s.add("data", Spec::text().doc(
                    "train, valid, CONFIG.yaml[:part], a folder or a file; default: the model's "
                    "training data"));
  s.add("samples", Spec::integer()
                       .at_least(1)
                       .at_most(static_cast<double>(kMaxSamples))
                       .fallback("256")
                       .doc("how many are read"));
  s.add("batch_size", Spec::integer()
                          .at_least(1)
                          .at_most(static_cast<double>(kMaxBatch))
                          .fallback("8")
                          .doc("samples at a time"));
  s.add("observer", Spec::word(range_method_names())
                        .fallback("min_max")
                        .doc("how the range of a layer's input is chosen"));
  s.add("percentile", Spec::real().at_least(50).at_most(100).fallback("99.99").doc(
                          "of values within the range, for the percentile observer"));
  s.add("statistics",
        Spec::path().doc("histograms: read if the file fits the model, else written"));
  return s;
}

Schema limit_schema() {
  Schema s;
  s.add("drop", Spec::text().doc("largest fall: 0.5% is 0.005"));
  s.add("rise", Spec::text().doc("largest rise: 2% is a share of the float model's value"));
  return s;
}

Schema latency_schema() {
  Schema s;
  s.add("batch", Spec::integer()
                     .at_least(1)
                     .at_most(static_cast<double>(kMaxBatch))
                     .fallback("1")
                     .doc("batch size when models and layers are timed"));
  s.add("speedup", Spec::real().above(0).doc("least ratio of latencies, as 'speedup' of 'accept'"));
  s.add("milliseconds", Spec::real().above(0).doc("longest latency of the quantized model"));
  return s;
}

Schema accept_schema() {
  Schema s;
  s.add("accuracy", Spec::text().doc("largest fall, such as 0.5%"));
  s.add("metrics",
        Spec::map_of(Spec::text().or_else(Spec::map(limit_schema())))
            .fallback("{}")
            .doc("how much worse metrics of the model's config, or its loss, may become: a number, "
                 "or a percentage (of the float model's value where lower is better)"));
  s.add("confidence", Spec::real().above(0).below(100).doc(
                          "percent of certainty that limits of metrics hold, such as 95; "
                          "default: the measured change counts"));
  s.add("sqnr_db", Spec::real().doc("least signal-to-noise ratio of the output"));
  s.add("speedup",
        Spec::real().above(0).doc("least ratio of latencies; default: 1 for int8, int8_dynamic"));
  s.add("latency", Spec::map(latency_schema())
                       .fallback("{}")
                       .doc("the batch that latencies are measured with, and limits on them"));
  s.add("size", Spec::real().above(0).doc("largest ratio of file sizes"));
  return s;
}

Schema budget_schema() {
  Schema s;
  s.add("time", Spec::text().doc("seconds, '30m' or '1h30m'; then the best model so far is taken"));
  s.add("trials", Spec::integer().at_least(1).at_most(1 << 20).fallback("50").doc(
                      "largest number of models that are compared"));
  return s;
}

Schema search_schema() {
  Schema s;
  s.add("budget", Spec::map(budget_schema()).fallback("{}").doc("how long to search"));
  s.add("sensitivity",
        Spec::word({"sqnr", "gradient"})
            .fallback("sqnr")
            .doc("what orders the layers: sqnr, the noise of the model's output when one layer "
                 "takes integers; gradient, the change of the run's loss to first order"));
  return s;
}

Schema teacher_schema() {
  Schema s;
  s.add("model", Spec::path().doc("a trained run, its model or a checkpoint, in floats"));
  s.add("weight", Spec::real().above(0).at_most(1).fallback("0.5").doc(
                      "of the distance to its outputs in the loss; the rest is that of 'loss'"));
  s.add("temperature",
        Spec::real().above(0).fallback("1").doc("by which logits are divided, for kl"));
  s.add("loss", Spec::word({"kl", "mse"})
                    .fallback("kl")
                    .doc("kl: divergence of the softmax of the first outputs over their last axis; "
                         "mse: mean squared difference"));
  return s;
}

Schema training_schema() {
  Schema s;
  s.add("observe", Spec::integer().at_least(1).at_most(1 << 20).fallback("32").doc(
                       "steps that only observe the ranges of inputs"));
  s.add("learned_scales", Spec::boolean().fallback("true").doc(
                              "scales are trained (LSQ); false: moving averages of ranges"));
  s.add("freeze_norms", Spec::integer().at_least(0).at_most(1e15).doc(
                            "steps after which batch norms use their running statistics and leave "
                            "them; default: never"));
  s.add("teacher", Spec::map(teacher_schema())
                       .fallback("null")
                       .doc("a model in floats whose outputs the loss compares with"));
  return s;
}

}  // namespace

std::vector<std::string> scheme_names() {
  return {"int8", "int8_dynamic", "int8_weights", "int4_weights", "float16", "bf16"};
}

std::vector<std::string> accept_keys() {
  std::vector<std::string> out;
  const Schema schema = accept_schema();
  for (const Schema::Key& key : schema.keys())
    if (key.name != "metrics") out.push_back(key.name);
  return out;
}

Schema quant_schema() {
  Schema s;
  s.add("scheme", Spec::word(scheme_names())
                      .fallback("int8")
                      .doc("int8: calibrated activations and weights; int8_dynamic: ranges of "
                           "activations from each run; …_weights: float activations; float16, "
                           "bf16: floats of 16 bits"));
  s.add("target", Spec::word({"cpu", "cpu-avx2", "onnxruntime", "onnxruntime-avx2"})
                      .fallback("cpu")
                      .doc("cpu: layers are timed on this machine; onnxruntime: they are not; "
                           "…-avx2: weights of 7 bits, which processors without VNNI multiply "
                           "faster and without overflow"));
  s.add("weights", Spec::map(weights_schema()).fallback("{}").doc("format of the weights"));
  s.add("activations",
        Spec::map(activations_schema()).fallback("{}").doc("when their ranges are chosen"));
  s.add("products", Spec::boolean().fallback("true").doc(
                        "products of two activations, such as those of attention, take integers "
                        "too, where activations are static"));
  s.add("calibrate", Spec::map(calibrate_schema()).fallback("{}").doc("ranges of activations"));
  s.add("evaluate", Spec::text().doc("data to compare on; default: the model's validation data"));
  s.add("layers",
        Spec::list(Spec::map(rule_schema())).fallback("[]").doc("exceptions; later ones win"));
  s.add("methods",
        Spec::list(Spec::choice("name", {{"equalize", method_schema(false, false)},
                                         {"smooth", method_schema(true, false)},
                                         {"awq", method_schema(false, false)},
                                         {"gptq", method_schema(false, true)},
                                         {"adaround", method_schema(false, false)},
                                         {"bias_correction", method_schema(false, false)}}))
            .fallback("[]")
            .doc("what lowers the error, in this order"));
  s.add("measure", Spec::boolean().fallback("true").doc(
                       "layers that are slower in integers on this machine stay float"));
  s.add("accept", Spec::map(accept_schema()).fallback("{}").doc("what the model must reach"));
  s.add("search", Spec::map(search_schema())
                      .fallback("null")
                      .doc("layers go back to floats, the most sensitive first, until the model is "
                           "accepted"));
  s.add("train", Spec::map(training_schema())
                     .fallback("null")
                     .doc("paddle-train rounds to these integers while it trains"));
  return s;
}

void register_section() {
  config::register_section(
      {.name = "quant",
       .owner = "paddle-quant",
       .doc = "what paddle-quant does; with 'train', paddle-train prepares for it",
       .schema = quant_schema});
}

}  // namespace paddle::quant
