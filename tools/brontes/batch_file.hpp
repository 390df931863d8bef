// A batch described in a file: docs/batch-files.md has the format.
#pragma once

#include <brontes/batch.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace tool {

struct NamedTensor {
  std::string name;
  brontes::Tensor tensor;
  std::string file;  // where an output goes; empty for nowhere
};

/// What a file records.
struct BatchFile {
  brontes::Batch batch;
  std::vector<NamedTensor> outputs;
};

/// Reads the file and records it on a device. Throws InputError, with the file's name, where the file or one of its
/// .npy files is not what it should be, or an op refuses its operands.
BatchFile read_batch(const std::string& path, const brontes::Device& device, const brontes::BatchOptions& options = {});

/// The ops that such a file can have, by name.
std::vector<std::string> batch_file_ops();

}  // namespace tool
