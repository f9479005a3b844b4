#pragma once
// An open state of a reader of a plug-in, and what samples are read into. Not for use outside the
// room.

#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "plugin/frame.h"
#include "plugin/host.h"
#include "plugin/reader_adapter.h"

namespace paddle::plugin {

class ReaderState {
 public:
  /// Opens the data; the plug-in's error. The context must outlive it.
  ReaderState(const ReaderContext& context, const KindOptions& options);
  ~ReaderState();
  ReaderState(const ReaderState&) = delete;
  ReaderState& operator=(const ReaderState&) = delete;

  /// The fields that the reader describes; kData for a description that does not fit.
  std::vector<data::Field> describe() const;
  std::optional<uint64_t> fingerprint() const;
  /// The plug-in's text for the place of a sample; "" if it has none.
  std::string location(int64_t index) const;

  /// Calls `function(call, state)`; gives PADDLE_OK or PADDLE_DECLINED, throws for other statuses.
  template <class Function>
  paddle_status call(const char* what, Function&& function) const {
    paddle_call call;
    return call_with(call, what, function);
  }
  template <class Function>
  paddle_status call_with(paddle_call& call, const char* what, Function&& function) const {
    paddle_status status = PADDLE_INTERNAL;
    {
      const Frame frame(context_.plugin.c_str(), what, context_.name.c_str());
      status = call_plugin(frame, context_.plugin.c_str(), context_.name.c_str(),
                           [&] { return function(&call, state_); });
    }
    if (status != PADDLE_OK && status != PADDLE_DECLINED) throw_status(call, status, context_.name);
    return status;
  }

 private:
  const ReaderContext& context_;
  void* state_ = nullptr;
};

/// A sample that a plug-in fills in.
class SampleWriter {
 public:
  /// Both must live as long as the writer.
  SampleWriter(const std::vector<data::Field>& fields, data::Sample& sample);
  const paddle_sample* get() const { return &struct_; }
  /// The mistake of the plug-in; "" for none.
  const std::string& problem() const { return problem_; }
  /// The same, or that it has not given all fields.
  std::string problem_of_whole() const;

 private:
  static void* memory_of_field(void* context, uint32_t field, const int64_t* shape, int32_t rank);
  void* memory_of(uint32_t field, const int64_t* shape, int32_t rank);

  const std::vector<data::Field>& fields_;
  data::Sample& sample_;
  std::vector<bool> is_set_;
  std::string problem_;
  paddle_sample struct_{};
};

/// The common base of datasets of readers and of streams.
class ReaderDataset : public data::Dataset {
 public:
  const std::vector<data::Field>& fields() const final { return fields_; }
  std::vector<std::string> paths() const final { return paths_; }
  std::string source() const final;
  std::string fingerprint() const final;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 protected:
  /// The context must outlive the dataset.
  ReaderDataset(const ReaderContext& context, const KindOptions& options, const ReaderState& state);
  /// The place of a sample or of its field: the plug-in's text, if it has one.
  std::string place_of(std::string own, int64_t index, int64_t field) const;

  const ReaderContext& context_;
  const std::vector<data::Field> fields_;

 private:
  std::vector<std::string> paths_;
  std::optional<uint64_t> fingerprint_;
};

}  // namespace paddle::plugin
