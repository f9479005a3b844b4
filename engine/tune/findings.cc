#include "tune/findings.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"

namespace paddle::tune {

std::string Findings::key(const std::string& problem) { return str(thread_count(), " ", problem); }

std::string Findings::name(size_t index) const {
  return str(stem_, index == 0 ? "" : str("_", index + 1), extension_);
}

void Findings::add(const std::string& problem, const std::string& choice) {
  results_[key(problem)] = choice;
  has_new_ = has_new_ || !choice.empty();
}

std::string Findings::collect() {
  if (has_new_) {
    Table all;
    const std::string prefix = key("");
    for (const auto& [problem, choice] : results_)
      if (problem.starts_with(prefix) && !choice.empty())
        all.emplace(problem.substr(prefix.size()), choice);
    tables_.emplace(name(tables_.size()), std::move(all));
    has_new_ = false;
  }
  return tables_.empty() ? "" : name(tables_.size() - 1);
}

const Findings::Table* Findings::table(const std::string& name) const {
  const auto it = tables_.find(name);
  return it == tables_.end() ? nullptr : &it->second;
}

std::string state_text(const Findings& kernels, const Findings& schedules) {
  nlohmann::ordered_json o;
  for (const Findings* f : {&kernels, &schedules})
    o[f->stem_] = {{"results", f->results_}, {"tables", f->tables_}, {"new", f->has_new_}};
  return o.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void read_state(const std::string& text, Findings& kernels, Findings& schedules) {
  try {
    const auto o = nlohmann::ordered_json::parse(text);
    for (Findings* f : {&kernels, &schedules}) {
      const auto& own = o.at(f->stem_);
      f->results_ = own.at("results").get<Findings::Table>();
      f->tables_ = own.at("tables").get<std::map<std::string, Findings::Table>>();
      f->has_new_ = own.at("new").get<bool>();
    }
  } catch (const nlohmann::json::exception& e) {
    fail(ErrorCode::kData, "the state of the search cannot be read: ", e.what());
  }
}

}  // namespace paddle::tune
