// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
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
    const std::size_t size = bytes->size();
    AppendPart(std::move(bytes), 0, size);
  }

  /// Moves the first `count` bytes (there are as many) to the end of `out`;
  /// long parts of what is kept without a copy, again without one.
  void MoveTo(ByteQueue& out, std::size_t count) {
    UseUp(count, [&out](const Block& block, std::size_t part) {
      if (block.shared != nullptr && part >= kMinPart) {
        out.AppendPart(block.shared, block.begin, part);
      } else {
        out.Append(std::string_view(block.data() + block.begin, part));
      }
    });
  }

  std::string TakeAll() {
    std::string all;
    all.reserve(size_);
    UseUp(size_, [&all](const Block& block, std::size_t part) {
      all.append(block.data() + block.begin, part);
    });
    return all;
  }

  /// Where the first bytes are, until anything changes; in `pieces`, as far as
  /// these go. How many of them are used.
  std::size_t Peek(std::span<iovec> pieces) const {
    const std::size_t count = std::min(pieces.size(), blocks_.size() - first_);
    for (std::size_t i = 0; i < count; ++i) {
      const Block& block = blocks_[first_ + i];
      // For iovec, which serves reading as well.
      pieces[i] = {const_cast<char*>(block.data() + block.begin),
                   block.end - block.begin};
    }
    return count;
  }

  /// The first `count` bytes (there are as many) are used up.
  void Skip(std::size_t count) {
    UseUp(count, [](const Block&, std::size_t) {});
  }

  void Clear() { *this = ByteQueue(); }

 private:
  static constexpr std::size_t kMinBlock = 512;
  static constexpr std::size_t kMaxBlock = 32 * 1024;
  /// A shorter one is copied sooner than shared.
  static constexpr std::size_t kMinPart = 2048;

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

  void AppendPart(std::shared_ptr<const std::string> bytes, std::size_t begin,
                  std::size_t size) {
    if (size == 0) return;
    size_ += size;
    blocks_.push_back(
        {nullptr, begin + size, begin, begin + size, std::move(bytes)});
  }

  /// `use(block, part)`: its first `part` bytes.
  template <typename Use>
  void UseUp(std::size_t count, Use use) {
    size_ -= count;
    while (count > 0) {
      Block& block = blocks_[first_];
      const std::size_t part = std::min(count, block.end - block.begin);
      use(block, part);
      block.begin += part;
      count -= part;
      if (block.begin == block.end) Drop();
    }
  }

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
