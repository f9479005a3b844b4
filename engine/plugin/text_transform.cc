// Transforms of a file NAME.plugin.yaml: an expression of one field of a sample.

#include <cstring>

#include "lang/eval/shape_interpreter.h"
#include "plugin/text_code.h"
#include "plugin/text_kinds.h"
#include "runtime/execute.h"

namespace paddle::plugin {
namespace {

using config::Schema;
using config::Section;
using config::Spec;

constexpr int64_t kMaxDraws = 64;

struct TransformText {
  TextCode body;
  int64_t draws = 0;
};

class StatedTransform final : public data::Transform {
 public:
  StatedTransform(std::shared_ptr<const TransformText> text, lang::NamedValues keys)
      : text_(std::move(text)), keys_(std::move(keys)) {}

  data::Field infer(const data::Field& in) const override {
    using data::FieldKind;
    const std::string& name = text_->body.owner;
    if (in.kind != FieldKind::kPlain && in.kind != FieldKind::kImage)
      fail(ErrorCode::kConfig, name, ": is for images and plain fields, found ", in.text());
    Shape shape;
    for (size_t i = 0; i < in.shape.size(); ++i)
      shape.push_back(in.shape[i] < 0 ? Dim::symbol(str("size", i)) : Dim(in.shape[i]));
    lang::ShapeInterpreter interpreter;
    const InterpreterScope scope(interpreter);
    const TensorType found =
        value(lang::abstract_tensor({in.dtype, shape}), std::vector<double>(draws(), 0.5)).type();
    data::Field out = in;
    out.dtype = found.dtype;
    out.shape.clear();
    for (const Dim& dim : found.shape) out.shape.push_back(dim.constant().value_or(-1));
    const bool same_length =
        !shape.empty() && !found.shape.empty() && found.shape[0].same(shape[0]);
    if (!same_length) out.max_length = 0;
    out.class_count = 0;
    out.classes.clear();
    if (in.kind == FieldKind::kImage &&
        (found.shape.size() != 3 || !found.shape[1].same(shape[1]) ||
         !found.shape[2].same(shape[2])))
      fail(ErrorCode::kConfig, name, ": changes an image of ", in.text(), " to ", found,
           ", expected the same height and width");
    return out;
  }

  void apply(const data::Value& in, data::Value& out, data::FieldKind,
             RandomSequence random) const override {
    std::vector<double> drawn(draws());
    for (double& each : drawn) each = random.uniform();
    runtime::EagerExecutor executor;
    const InterpreterScope scope(executor);
    const Array result = value(Tensor(in.array()), drawn).array().contiguous();
    out.reset(result.dtype, result.shape);
    if (out.bytes() > 0) std::memcpy(out.raw(), result.raw(), out.bytes());
  }

 private:
  size_t draws() const { return static_cast<size_t>(text_->draws); }

  Tensor value(const Tensor& x, const std::vector<double>& drawn) const {
    lang::NamedValues names = keys_;
    names.emplace_back("x", x);
    if (!drawn.empty())
      names.emplace_back("draws", lang::Value::list({drawn.begin(), drawn.end()}));
    return tensor_result(text_->body.owner, run_text(text_->body, names));
  }

  std::shared_ptr<const TransformText> text_;
  lang::NamedValues keys_;
};

}  // namespace

Spec transform_entry_spec() {
  Schema s;
  s.add("doc", Spec::text().required().doc("one line for the reference"));
  s.add("keys", Spec::map_of(Spec::any()).fallback("{}").doc("keys of its own in configs"));
  s.add("body", Spec::text().required().doc("the new value of the field x of a sample"));
  s.add("draws", Spec::integer().at_least(0).at_most(kMaxDraws).fallback("0").doc(
                     "random numbers in [0, 1) that body reads as draws[0], draws[1], ..."));
  s.add("samples",
        Spec::list(Spec::text()).fallback("[]").doc("fields for the checks, such as u8[3,8,8]"));
  return Spec::map(s);
}

data::TransformInfo read_transform(const TextEntry& entry) {
  const std::vector<KindKey> keys = keys_of_entry(entry, {"fields", "x", "draws"});
  const auto text = std::make_shared<TransformText>();
  text->draws = entry.section.integer("draws");
  std::vector<std::string> names = {"x"};
  if (text->draws > 0) names.emplace_back("draws");
  for (const KindKey& key : keys) names.push_back(key.name);
  text->body = code_of_entry(entry, entry.section.at("body"), std::move(names));
  return {
      .name = entry.name,
      .doc = entry.section.text("doc"),
      .keys = config::schema_of(keys),
      .read = [text, keys, name = entry.name](const Section& values) {
        data::TransformOptions out;
        out.kind = data::TransformKind::kOwn;
        const auto make = [text, named = values_of_keys(keys, values)] {
          return std::make_unique<StatedTransform>(text, named);
        };
        out.own = std::make_shared<data::OwnTransform>(data::OwnTransform{
            .name = name, .make = make, .is_for_any_values = true, .is_random = text->draws > 0});
        return out;
      }};
}

}  // namespace paddle::plugin
