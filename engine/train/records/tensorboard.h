#pragma once
// TensorBoard event files: scalars by step, in the record format of TFRecord files
// (https://www.tensorflow.org/tutorials/load_data/tfrecord).

#include <cstdint>
#include <fstream>
#include <string>

namespace paddle::train {

class EventWriter {
 public:
  /// Opens a new file in the folder, which is made if it is absent. TensorBoard shows the files of
  /// a folder as one run. `resumed_step`: of a run that continues there (-1: of a new one): what
  /// other files have of later steps is dropped.
  explicit EventWriter(const std::string& folder, int64_t resumed_step = -1);
  /// Values that are not finite are left out. kDevice if the disk rejects.
  void scalar(const std::string& tag, int64_t step, double value);
  void flush();

 private:
  void record(const std::string& event);
  std::string path_;
  std::ofstream file_;
};

}  // namespace paddle::train
