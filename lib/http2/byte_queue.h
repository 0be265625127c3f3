// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace devmgr::http2 {

/// Bytes that wait, first in, first out, in blocks that are given back as they
/// are used up.
class ByteQueue {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  void Append(std::string_view bytes) {
    size_ += bytes.size();
    while (!bytes.empty()) {
      if (blocks_.size() == first_ || blocks_.back().room() == 0) {
        const std::size_t size = std::clamp(bytes.size(), kMinBlock, kMaxBlock);
        blocks_.push_back({std::make_unique_for_overwrite<char[]>(size), size});
      }
      Block& block = blocks_.back();
      const std::size_t count = std::min(block.room(), bytes.size());
      std::memcpy(block.bytes.get() + block.end, bytes.data(), count);
      block.end += count;
      bytes.remove_prefix(count);
    }
  }

  /// The same, without a copy. Kept until it is used up.
  void Append(std::shared_ptr<const std::string> bytes) {
    if (bytes->empty()) return;
    const std::size_t size = bytes->size();
    size_ += size;
    blocks_.push_back({nullptr, size, 0, size, std::move(bytes)});
  }

  /// Moves the first `count` bytes (there are as many) to the end of `out`.
  void MoveTo(std::string& out, std::size_t count) {
    size_ -= count;
    while (count > 0) {
      Block& block = blocks_[first_];
      const std::size_t taken = std::min(count, block.end - block.begin);
      out.append(block.data() + block.begin, taken);
      block.begin += taken;
      count -= taken;
      if (block.begin == block.end) Drop();
    }
  }

  std::string TakeAll() {
    std::string all;
    all.reserve(size_);
    MoveTo(all, size_);
    return all;
  }

  void Clear() { *this = ByteQueue(); }

 private:
  static constexpr std::size_t kMinBlock = 512;
  static constexpr std::size_t kMaxBlock = 32 * 1024;

  struct Block {
    std::size_t room() const { return size - end; }
    const char* data() const {
      return shared != nullptr ? shared->data() : bytes.get();
    }
    std::unique_ptr<char[]> bytes;
    std::size_t size = 0;
    std::size_t begin = 0;
    std::size_t end = 0;
    std::shared_ptr<const std::string> shared = nullptr;  ///< In place of ours.
  };

  /// The first block is used up.
  void Drop() {
    blocks_[first_].bytes.reset();
    blocks_[first_].shared.reset();
    if (++first_ == blocks_.size()) {
      blocks_.clear();
      first_ = 0;
    } else if (first_ > 64) {
      blocks_.erase(blocks_.begin(),
                    blocks_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
  }

  std::vector<Block> blocks_;
  std::size_t first_ = 0;  ///< Blocks before are used up.
  std::size_t size_ = 0;
};

}  // namespace devmgr::http2
