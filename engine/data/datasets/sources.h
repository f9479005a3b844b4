#pragma once
// The kinds of dataset of make_dataset, one function each. Range and split are applied by
// make_dataset, except for text, tokens and series, which are cut before windows are laid over
// them.

#include <vector>

#include "data/options.h"

namespace paddle::data {

DatasetPtr make_idx(const IdxOptions& options);
DatasetPtr make_npz(const NpzOptions& options);
DatasetPtr make_npy(const NpyOptions& options);
/// A dataset that learns from the samples in use (scaling) before it can be read.
class LearningDataset : public Dataset {
 public:
  /// `used[i]` says whether sample i of the files is one of them. Called once.
  virtual void learn(const std::vector<bool>& used) = 0;
};
std::shared_ptr<LearningDataset> make_csv(const CsvFileOptions& options);
/// `(x - shift) * factor` for the fields that `scales` names; integers become float32.
DatasetPtr make_scaled(DatasetPtr base, const std::vector<Fitted>& scales);
DatasetPtr make_text(const TextOptions& options, const DatasetOptions& part);
DatasetPtr make_tokens(const TokensOptions& options, const DatasetOptions& part);
DatasetPtr make_image_folder(const ImageFolderOptions& options);
DatasetPtr make_boxes(const BoxOptions& options);
DatasetPtr make_hdf5(const Hdf5Options& options);
DatasetPtr make_series(const SeriesOptions& options, const DatasetOptions& part);
DatasetPtr make_chat(const ChatOptions& options);
DatasetPtr make_mixture(const MixtureOptions& options);
DatasetPtr make_random(const RandomOptions& options);
DatasetPtr make_digits(const DigitsOptions& options);

}  // namespace paddle::data
