// The C interface for training runs, on top of the C++ one.

#include <algorithm>
#include <cstring>
#include <mutex>

#include "api/c_handles.h"
#include "base/text.h"
#include "paddle/model.h"
#include "paddle/trainer.h"

using paddle::c_api::BadCall;
using paddle::c_api::guarded;
using paddle::c_api::Handles;
using paddle::c_api::known_fields;
using paddle::c_api::required;
using paddle::c_api::text_or;
using paddle::v0::Trainer;
using paddle::v0::TrainOptions;
using paddle::v0::TrainResult;
using paddle::v0::TrainStep;

struct paddle_trainer {
  Trainer trainer;
  std::mutex mutex = {};  ///< calls of several threads take turns
  std::string saved = {};
  TrainResult result = {};
};

namespace {

std::shared_ptr<paddle_trainer> opened(paddle_trainer* trainer) {
  return Handles<paddle_trainer>::all().get(trainer, "trainer");
}

/// Fills in as much of the caller's structure as it has.
void give(const paddle_train_step& from, paddle_train_step* to) {
  if (!to) return;
  if (to->struct_size < sizeof(size_t) || to->struct_size > 4096)
    throw BadCall{
        paddle::str("struct_size is ", to->struct_size, ", expected sizeof the structure")};
  const size_t size = to->struct_size;
  std::memcpy(to, &from, std::min(size, sizeof from));
  to->struct_size = size;
}

}  // namespace

extern "C" {

const char* paddle_devices(void) {
  static const std::string names = paddle::join(paddle::v0::devices(), " ");
  return names.c_str();
}

paddle_status paddle_trainer_open(const char* config, const paddle_trainer_options* options,
                                  paddle_trainer** trainer) {
  return guarded(__func__, [&] {
    required(trainer, "trainer") = nullptr;
    required(config, "config");
    const paddle_trainer_options given = known_fields(options);
    TrainOptions known;
    known.output = text_or(given.output, "");
    if (given.override_count > 0) required(given.overrides, "overrides");
    for (size_t i = 0; i < given.override_count; ++i)
      known.overrides.emplace_back(&required(given.overrides[i], "overrides[i]"));
    known.resume = given.resume != 0;
    known.overwrite = given.overwrite != 0;
    known.eager = given.eager != 0;
    known.initial_weights = text_or(given.initial_weights, "");
    known.device = text_or(given.device, known.device);
    known.memory = given.memory;
    *trainer = Handles<paddle_trainer>::all().add(
        std::make_shared<paddle_trainer>(Trainer(config, std::move(known))));
  });
}

paddle_status paddle_trainer_step(paddle_trainer* trainer, paddle_train_step* step,
                                  int32_t* ended) {
  return guarded(__func__, [&] {
    required(ended, "ended") = 1;
    const auto held = opened(trainer);
    const std::lock_guard lock(held->mutex);
    paddle_train_step out{};
    give(out, step);  // before the step, so that a wrong size costs none
    const std::optional<TrainStep> done = held->trainer.step();
    if (!done) return;
    out.step = done->step;
    out.epoch = done->epoch;
    out.loss = done->loss;
    out.learning_rate = done->learning_rate;
    if (done->evaluation) {
      out.evaluated = 1;
      out.evaluation_loss = done->evaluation->loss;
    }
    give(out, step);
    *ended = 0;
  });
}

paddle_status paddle_trainer_save(paddle_trainer* trainer, const char** path) {
  return guarded(__func__, [&] {
    const auto held = opened(trainer);
    const std::lock_guard lock(held->mutex);
    held->saved = held->trainer.save();
    if (path) *path = held->saved.c_str();
  });
}

paddle_status paddle_trainer_finish(paddle_trainer* trainer, const char** model_folder) {
  return guarded(__func__, [&] {
    const auto held = opened(trainer);
    const std::lock_guard lock(held->mutex);
    held->result = held->trainer.finish();
    if (model_folder) *model_folder = held->result.model_folder.c_str();
  });
}

paddle_status paddle_trainer_close(paddle_trainer* trainer) {
  return guarded(__func__, [&] {
    if (trainer) Handles<paddle_trainer>::all().remove(trainer, "trainer");
  });
}

}  // extern "C"
