#include "train/step/distillation.h"

#include "data/open_data.h"
#include "ops/core/operators.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "program/model_source.h"
#include "program/saved_model.h"

namespace paddle::train {

bool is_of_teacher(const std::string& path) {
  return path.starts_with(str(Distillation::kName, "."));
}

std::optional<Distillation> read_distillation(const config::Section& config) {
  if (!config.has("quant") || !config.section("quant").has("train")) return std::nullopt;
  const config::Section training = config.section("quant").section("train");
  if (!training.has("teacher")) return std::nullopt;
  const config::Section teacher = training.section("teacher");
  Distillation out;
  if (!teacher.has("model"))
    throw Error(ErrorCode::kConfig, "quant.train.teacher: needs 'model', a trained run",
                teacher.node().location());
  out.weight = teacher.real("weight");
  out.temperature = teacher.real("temperature");
  out.squared = teacher.text("loss") == "mse";
  const std::string folder = data::with_location(&teacher.at("model"), [&] {
    return program::find_model_folder(config::resolve_path(teacher.at("model")));
  });
  const program::ModelFolder opened = program::open_model_folder(folder);
  if (!opened.metadata.config)
    throw Error(ErrorCode::kModel, "quant.train.teacher: " + folder + " is not a trained model",
                teacher.at("model").location());
  out.model = program::read_models(*opened.metadata.config).front();
  out.model.name = Distillation::kName;
  out.model.weights = folder + "/model.safetensors";
  out.model.frozen = true;
  return out;
}

Tensor distance(const Distillation& distillation, const Tensor& student, const Tensor& teacher) {
  if (!same_shape(student.shape(), teacher.shape()))
    fail(ErrorCode::kConfig, "quant.train.teacher: the student gives ", student.type(),
         ", the teacher ", teacher.type());
  const Tensor target = ops::detach(teacher);
  if (distillation.squared) {
    const Tensor difference = student - target;
    return ops::mean(difference * difference);
  }
  const double t = distillation.temperature;
  const Tensor log_student = ops::log_softmax(student / t, -1),
               log_teacher = ops::log_softmax(target / t, -1);
  const Tensor rows =
      ops::sum(ops::exp(log_teacher) * (log_teacher - log_student), std::vector<int64_t>{-1});
  return ops::mean(rows) * (t * t);
}

}  // namespace paddle::train
