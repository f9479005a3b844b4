#include "plugin/process_state.h"

#include <clocale>
#include <filesystem>

namespace paddle::plugin {
namespace {

std::string current_folder() {
  std::error_code failed;
  return std::filesystem::current_path(failed).string();
}

}  // namespace

KeepProcessState::KeepProcessState(std::string& change)
    : change_(change),
      locale_(std::setlocale(LC_ALL, nullptr)),
      folder_(current_folder()),
      rounding_(fegetround()),
      control_(float_control()) {}

KeepProcessState::~KeepProcessState() {
  if (fegetround() != rounding_) {
    change_ = "it changes the rounding mode";
    fesetround(rounding_);
  }
  if (float_control() != control_) {
    if (change_.empty())
      change_ = "it changes how the floating-point unit treats denormals or traps";
    set_float_control(control_);
  }
  if (current_folder() != folder_) {
    change_ = "it changes the current folder";
    std::error_code failed;
    std::filesystem::current_path(folder_, failed);
  }
  if (locale_ != std::setlocale(LC_ALL, nullptr)) {
    change_ = "it changes the locale";
    std::setlocale(LC_ALL, locale_.c_str());
  }
}

}  // namespace paddle::plugin
