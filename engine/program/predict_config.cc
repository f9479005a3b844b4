#include "program/predict_config.h"

#include <algorithm>

#include "config/overrides.h"

namespace paddle::program {
namespace {

using config::Diagnostics;
using config::Node;
using config::Schema;
using config::Section;
using config::Spec;

constexpr char kSection[] = "predict";

Spec name_of_output(const std::string& doc) { return Spec::text().required().doc(doc); }

Schema tag_schema() {
  Schema s;
  s.add("scores", name_of_output("output [batch, length, tags]"));
  s.add("field", Spec::text().required().doc("of the data, whose vocabulary the tags are"));
  s.add("words", Spec::text().required().doc("input with the text"));
  return s;
}

Schema ctc_schema() {
  Schema s;
  s.add("scores", name_of_output("output [batch, steps, classes]"));
  s.add("field", Spec::text().required().doc("of the data, whose vocabulary the classes are"));
  s.add("blank", Spec::integer().at_least(0).fallback("0").doc("the class between characters"));
  return s;
}

Schema sequence_schema() {
  Schema s;
  s.add("scores", name_of_output("output [batch, length + 1, tokens]: logits of each next token"));
  s.add("target", Spec::text().required().doc("input with the text so far; token 0 ends it"));
  s.add("beams", Spec::integer().at_least(1).at_most(64).fallback("1").doc(
                     "texts that are followed at a time; 1: the likeliest token each time"));
  s.add("max_length", Spec::integer().at_least(1).at_most(1 << 14).doc(
                          "tokens of a text; default: the field's max_length"));
  return s;
}

Schema box_schema() {
  Schema s;
  s.add("boxes", name_of_output("output [batch, n, 4]: left, top, right, bottom in pixels"));
  s.add("scores", name_of_output("output [batch, n, classes]"));
  s.add("field", Spec::text().required().doc("of the data, with the classes of boxes"));
  s.add("activation",
        Spec::word({"sigmoid", "none"}).fallback("sigmoid").doc("that makes scores of the output"));
  s.add("threshold", Spec::real().at_least(0).at_most(1).fallback("0.3").doc("least score"));
  s.add("overlap", Spec::real().at_least(0).at_most(1).fallback("0.6").doc(
                       "intersection over union above which the lower score of a class is left "
                       "out"));
  s.add("most",
        Spec::integer().at_least(1).at_most(10000).fallback("100").doc("boxes of an image"));
  return s;
}

Schema mask_schema() {
  Schema s;
  s.add("scores", name_of_output("output [batch, classes, height, width]"));
  s.add("field", Spec::text().required().doc("of the data, with the mask"));
  return s;
}

Prediction read(const Section& s) {
  const std::string& kind = s.text("kind");
  if (kind == "tags") return TagPrediction{s.text("scores"), s.text("field"), s.text("words")};
  if (kind == "ctc") return CtcPrediction{s.text("scores"), s.text("field"), s.integer("blank")};
  if (kind == "mask") return MaskPrediction{s.text("scores"), s.text("field")};
  if (kind == "sequence")
    return SequencePrediction{s.text("scores"), s.text("target"), s.integer("beams"),
                              s.has("max_length") ? s.integer("max_length") : 0};
  return BoxPrediction{
      s.text("boxes"),     s.text("scores"),  s.text("field"),  s.text("activation") == "sigmoid",
      s.real("threshold"), s.real("overlap"), s.integer("most")};
}

/// The keys of the section that name something, with what they name.
enum class Names { kOutput, kInput, kField };
constexpr std::pair<const char*, Names> kNames[] = {
    {"scores", Names::kOutput}, {"boxes", Names::kOutput}, {"field", Names::kField},
    {"words", Names::kInput},   {"target", Names::kInput},
};

}  // namespace

Spec predict_spec() {
  return Spec::choice("kind", {{"tags", tag_schema()},
                               {"ctc", ctc_schema()},
                               {"sequence", sequence_schema()},
                               {"boxes", box_schema()},
                               {"mask", mask_schema()}})
      .doc("what paddle-infer makes of the model's outputs");
}

std::optional<Prediction> read_predict(const Node& config) {
  const Node* section = config.find(kSection);
  if (!section || !section->is_map()) return std::nullopt;
  return read(Section(*section));
}

std::optional<Prediction> read_predict(const Node* config,
                                       const std::vector<std::string>& overrides) {
  const Node* section = config ? config->find(kSection) : nullptr;
  if (!section || !section->is_map()) {
    if (!overrides.empty())
      fail(ErrorCode::kUsage, overrides[0], ": the model has no section `predict:`");
    return std::nullopt;
  }
  Node document;
  document.kind = Node::Kind::kMap;
  document.source = section->source;
  document.set(kSection, *section);
  for (const std::string& text : overrides) {
    const config::Override change = config::parse_override(text);
    if (change.path.size() != 2) fail(ErrorCode::kUsage, text, ": expected predict.KEY=VALUE");
    config::apply_override(document, change);
  }
  Diagnostics diagnostics;
  predict_spec().resolve(*document.find(kSection), kSection, diagnostics);
  diagnostics.raise();
  return read(Section(*document.find(kSection)));
}

void check_predict(const Node& config, const lang::Program& model,
                   const std::vector<std::string>& fields, Diagnostics& diagnostics) {
  const Node* section = config.find(kSection);
  if (!section || !section->is_map()) return;
  std::vector<std::string> inputs, outputs;
  for (const lang::Input& input : model.model.inputs) inputs.push_back(input.name.text);
  for (const lang::Name& output : model.model.outputs) outputs.push_back(output.text);
  if (outputs.empty() && !model.model.external) outputs = {"output"};
  for (const auto& [key, kind] : kNames) {
    const Node* value = section->find(key);
    if (!value) continue;
    const std::vector<std::string>& names = kind == Names::kOutput  ? outputs
                                            : kind == Names::kInput ? inputs
                                                                    : fields;
    if (names.empty() || std::find(names.begin(), names.end(), value->text) != names.end())
      continue;
    const char* const what = kind == Names::kOutput  ? "an output of the model"
                             : kind == Names::kInput ? "an input of the model"
                                                     : "a field of the data";
    diagnostics.add(ErrorCode::kConfig,
                    str(kSection, ".", key, ": '", value->text, "' is not ", what,
                        did_you_mean(value->text, names), "; there are ", join(names, ", ")),
                    value->location());
  }
}

std::vector<std::string> generated_inputs(const Prediction& prediction) {
  if (const auto* sequence = std::get_if<SequencePrediction>(&prediction))
    return {sequence->target};
  return {};
}

}  // namespace paddle::program
