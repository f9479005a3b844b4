// The table of the built-in kinds of dataset, in the order of the reference.

#include "data/dataset_kind.h"

namespace paddle::data {

// config/array_config.cc
DatasetKind digits_kind();
DatasetKind idx_kind();
DatasetKind npy_kind();
DatasetKind npz_kind();
DatasetKind hdf5_kind();
DatasetKind random_kind();
// config/image_config.cc
DatasetKind images_kind();
DatasetKind coco_kind();
DatasetKind yolo_kind();
// config/token_config.cc
DatasetKind text_kind();
DatasetKind tokens_kind();
DatasetKind chat_kind();
// config/composed_config.cc
DatasetKind series_kind();
DatasetKind dataset_kind();
DatasetKind mixture_kind();
// config/graph_config.cc
DatasetKind graph_whole_kind();
DatasetKind graph_neighbors_kind();
DatasetKind graph_edges_kind();
// sources/
DatasetKind csv_kind();
DatasetKind jsonl_kind();
DatasetKind lines_kind();
DatasetKind tar_kind();
DatasetKind parquet_kind();
DatasetKind slots_kind();
DatasetKind arff_kind();

Registry<DatasetKind>& dataset_kinds() {
  static Registry<DatasetKind> kinds("kind of dataset", {digits_kind(),      idx_kind(),
                                                         csv_kind(),         jsonl_kind(),
                                                         lines_kind(),       tar_kind(),
                                                         parquet_kind(),     text_kind(),
                                                         images_kind(),      coco_kind(),
                                                         yolo_kind(),        npy_kind(),
                                                         npz_kind(),         hdf5_kind(),
                                                         series_kind(),      tokens_kind(),
                                                         chat_kind(),        slots_kind(),
                                                         arff_kind(),        random_kind(),
                                                         graph_whole_kind(), graph_neighbors_kind(),
                                                         graph_edges_kind(), dataset_kind(),
                                                         mixture_kind()});
  return kinds;
}

}  // namespace paddle::data
