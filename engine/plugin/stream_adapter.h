#pragma once
// A reader of a plug-in whose samples come one after another, as a dataset: sample I of epoch E is
// the one with the number E * epoch_samples + I of the stream, which begins again at its end.

#include "plugin/reader_adapter.h"

namespace paddle::plugin {

/// Opens the stream; the context must outlive it. The plug-in's error.
data::DatasetPtr open_stream(const ReaderContext& context, const KindOptions& options,
                             int64_t epoch_samples);

}  // namespace paddle::plugin
