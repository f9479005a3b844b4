// A transform that is registered while the program runs.

#include <gtest/gtest.h>

#include "data/config/transform_config.h"
#include "data/transform_info.h"

namespace paddle::data {
namespace {

/// Adds a number to float32 values.
class Shift : public Transform {
 public:
  explicit Shift(double by) : by_(static_cast<float>(by)) {}
  Field infer(const Field& in) const override { return in; }
  void apply(const Value& in, Value& out, FieldKind, RandomSequence) const override {
    out.reset(in.dtype(), in.shape());
    for (int64_t i = 0; i < in.size(); ++i) out.data<float>()[i] = in.data<float>()[i] + by_;
  }

 private:
  float by_;
};

TransformInfo shift_info() {
  config::Schema keys;
  keys.add("by", config::Spec::real().required().doc("that is added"));
  return {.name = "shift",
          .doc = "a number is added",
          .keys = keys,
          .read = [](const config::Section& s) {
            TransformOptions o;
            o.kind = TransformKind::kOwn;
            o.own = std::make_shared<OwnTransform>(
                OwnTransform{.name = "shift",
                             .make = [by = s.real("by")] { return std::make_unique<Shift>(by); },
                             .is_for_any_values = true});
            return o;
          }};
}

TransformOptions read(const std::string& yaml) {
  config::Diagnostics diagnostics;
  config::Node node = config::parse_document(yaml, "transforms.yaml");
  TransformOptions o = read_transform(node, "data.transforms", diagnostics);
  diagnostics.raise();
  return o;
}

TEST(TransformRegistry, MayGrowAtRunTime) {
  EXPECT_THROW(read("shift: {fields: x, by: 3}"), Error);
  transform_registry().add({shift_info()}, {"plugin.so"});
  EXPECT_THROW(transform_registry().add({shift_info()}, {"other.so"}), Error);
  const TransformOptions options = read("shift: {fields: x, by: 3}");
  EXPECT_EQ(name_of(options), "shift");
  EXPECT_THROW(read("shift: {fields: x}"), Error);
  const Pipeline pipeline({{.name = "x", .dtype = DType::kF32, .shape = {2}}}, {options});
  Sample sample(1);
  const int64_t size = 2;
  sample[0].reset(DType::kF32, {&size, 1});
  sample[0].data<float>()[0] = 1, sample[0].data<float>()[1] = -2;
  Value scratch;
  pipeline.apply(sample, 0, {}, scratch);
  EXPECT_EQ(sample[0].number(0), 4);
  EXPECT_EQ(sample[0].number(1), 1);
  transform_registry().remove({"shift"});
}

TEST(TransformRegistry, HasTheBuiltInOnes) {
  EXPECT_EQ(transform_registry().names(), transform_names());
  const TransformOptions options = read("pad: {fields: x, pad: 2}");
  EXPECT_EQ(options.kind, TransformKind::kPad);
  EXPECT_EQ(options.fields, std::vector<std::string>{"x"});
}

}  // namespace
}  // namespace paddle::data
