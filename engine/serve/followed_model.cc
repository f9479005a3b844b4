#include "serve/followed_model.h"

#include <chrono>

#include "base/error.h"
#include "base/text.h"
#include "program/model_store.h"

namespace paddle::serve {

namespace {

constexpr std::chrono::milliseconds kPoll{100};
/// Before a version that could not be loaded is tried again.
constexpr std::chrono::milliseconds kRetry{5000};

std::string metric_of(const char* metric, const std::string& model) {
  return str(metric, "{", metric_label("model", model), "}");
}

/// kModel unless requests for one model are requests for the other.
void require_same_ports(const program::Model& now, const program::Model& next) {
  const auto forms = [](const program::Model& model) {
    std::string out;
    for (const auto& [name, type] : model.inputs()) out += str(name, ": ", type, ", ");
    return out + join(model.outputs(), ", ");
  };
  if (forms(now) != forms(next))
    fail(ErrorCode::kModel, "has the inputs and outputs ", forms(next), "; served are ",
         forms(now));
}

}  // namespace

FollowedModel::FollowedModel(ModelEntry entry, const PredictLimits& limits, Device device,
                             Metrics& metrics)
    : entry_(std::move(entry)), limits_(limits), device_(device), metrics_(metrics) {
  const bool is_store = program::is_store(entry_.path);
  if (entry_.follow && !is_store)
    fail(ErrorCode::kUsage, entry_.path,
         ": --follow is for a store, a folder with the file CURRENT "
         "(parameter_server.publish, paddle ps publish)");
  current_ = open(is_store ? program::current_version(entry_.path) : "");
  if (!entry_.follow) return;
  metrics_.add(metric_of("follow_errors_total", name()), 0);
  thread_ = std::thread([this] { follow(); });
}

FollowedModel::~FollowedModel() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<Predictor> FollowedModel::open(const std::string& version) {
  ModelEntry entry = entry_;
  if (!version.empty()) entry.path += "/" + version;
  auto out = std::make_shared<Predictor>(entry, limits_, device_, metrics_, version);
  if (!version.empty()) metrics_.set(metric_of("model_version", name()), std::stod(version));
  return out;
}

/// Waits; false at the end.
bool FollowedModel::waits(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return stopping_; });
}

void FollowedModel::follow() {
  auto pause = kPoll;
  while (waits(pause)) {
    pause = kPoll;
    try {
      const std::string version = program::current_version(entry_.path);
      const auto now = current_.load();
      if (version == now->version()) continue;
      auto next = open(version);
      require_same_ports(now->model(), next->model());
      current_ = std::move(next);
    } catch (const std::exception&) {
      // The version so far stays; the next one may be whole again.
      metrics_.add(metric_of("follow_errors_total", name()));
      pause = kRetry;
    }
  }
}

}  // namespace paddle::serve
