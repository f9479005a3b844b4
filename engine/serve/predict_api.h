#pragma once
// /v1/predict: requests to models of any kind and their answers.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/followed_model.h"
#include "serve/http_reader.h"

namespace paddle::serve {

struct PredictAnswer {
  std::string type;  ///< its Content-Type
  std::string body;
};

using Predictors = std::vector<std::unique_ptr<FollowedModel>>;

/// Answers a request. `check` is called while it waits, and throws to give it up. Throws ApiError
/// for what cannot be done as asked, with status 429 where the queue is full.
PredictAnswer answer_prediction(const HttpRequest& request, const Predictors& predictors,
                                Metrics& metrics, const std::function<void()>& check);

/// The entry of a model in the list of /v1/models, a JSON object: what it takes and gives.
std::string predictor_info(const Predictor& predictor);

}  // namespace paddle::serve
