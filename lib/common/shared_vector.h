// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/copy_on_write.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace devmgr {

/// A vector whose copies share its elements, in chunks: a copy costs a 64th of
/// what copying the elements does, and to change an element of a vector that
/// was copied copies its chunk. A vector belongs to one thread at a time; its
/// copies may be on others.
template <typename T>
class SharedVector {
 public:
  class const_iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = const T&;

    const_iterator() = default;
    const_iterator(const SharedVector* vector, std::size_t place)
        : vector_(vector), place_(place) {}
    reference operator*() const { return (*vector_)[place_]; }
    pointer operator->() const { return &(*vector_)[place_]; }
    const_iterator& operator++() {
      ++place_;
      return *this;
    }
    const_iterator operator++(int) {
      const const_iterator before = *this;
      ++place_;
      return before;
    }
    const_iterator& operator--() {
      --place_;
      return *this;
    }
    const_iterator operator--(int) {
      const const_iterator before = *this;
      --place_;
      return before;
    }
    const_iterator& operator+=(difference_type n) {
      place_ =
          static_cast<std::size_t>(static_cast<difference_type>(place_) + n);
      return *this;
    }
    friend const_iterator operator+(const_iterator i, difference_type n) {
      return i += n;
    }
    friend difference_type operator-(const const_iterator& a,
                                     const const_iterator& b) {
      return static_cast<difference_type>(a.place_) -
             static_cast<difference_type>(b.place_);
    }
    friend bool operator==(const const_iterator& a,
                           const const_iterator& b) = default;

   private:
    const SharedVector* vector_ = nullptr;
    std::size_t place_ = 0;
  };

  SharedVector() = default;
  explicit SharedVector(std::vector<T> elements) : size_(elements.size()) {
    chunks_.reserve((size_ + kChunk - 1) / kChunk);
    for (auto first = elements.begin(); first != elements.end();) {
      const auto last =
          first + std::min<std::ptrdiff_t>(kChunk, elements.end() - first);
      chunks_.push_back(Chunk::Make(std::make_move_iterator(first),
                                    std::make_move_iterator(last)));
      first = last;
    }
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, size_}; }

  /// `place` is below the size. Valid until this vector is changed.
  const T& operator[](std::size_t place) const {
    return (*chunks_[place / kChunk])[place % kChunk];
  }
  /// The same, to be changed.
  T& Edit(std::size_t place) {
    return chunks_[place / kChunk].Edit()[place % kChunk];
  }

  /// All elements, which this vector has no more: copies of those that others
  /// have, too.
  std::vector<T> Take() {
    std::vector<T> elements;
    elements.reserve(size_);
    for (Chunk& chunk : chunks_) {
      std::vector<T>& own = chunk.Edit();
      std::move(own.begin(), own.end(), std::back_inserter(elements));
    }
    chunks_.clear();
    size_ = 0;
    return elements;
  }

  friend bool operator==(const SharedVector& a, const SharedVector& b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  using Chunk = CopyOnWrite<std::vector<T>>;
  static constexpr std::size_t kChunk = 64;

  std::vector<Chunk> chunks_;
  std::size_t size_ = 0;
};

}  // namespace devmgr
