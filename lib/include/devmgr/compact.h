// SPDX-License-Identifier: Apache-2.0
//
// Small containers for objects that a node has 100,000 of.
#pragma once

#include <algorithm>
#include <atomic>
#include <compare>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace devmgr {

/// A text that never changes, in 8 bytes. Copies share it, on any thread.
class SharedText {
 public:
  SharedText() = default;
  // NOLINTBEGIN(google-explicit-constructor): it is a text, like the others
  SharedText(std::string_view text) : block_(Make(text)) {}
  SharedText(const std::string& text) : SharedText(std::string_view(text)) {}
  SharedText(const char* text) : SharedText(std::string_view(text)) {}
  operator std::string_view() const { return view(); }
  // NOLINTEND(google-explicit-constructor)
  SharedText(const SharedText& other) : block_(other.block_) {
    if (block_ != nullptr) {
      block_->holders.fetch_add(1, std::memory_order_relaxed);
    }
  }
  SharedText(SharedText&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)) {}
  SharedText& operator=(SharedText other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~SharedText() {
    if (block_ != nullptr &&
        block_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      // The analyzer does not follow counts of holders.
      block_->~Block();  // NOLINT(clang-analyzer-cplusplus.NewDelete)
      ::operator delete(block_);
    }
  }

  std::string_view view() const {
    return block_ == nullptr ? std::string_view()
                             : std::string_view(block_->text(), block_->size);
  }
  std::string str() const { return std::string(view()); }
  bool empty() const { return block_ == nullptr; }
  std::size_t size() const { return block_ == nullptr ? 0 : block_->size; }

  template <typename T>
  requires std::convertible_to<const T&, std::string_view>
  friend bool operator==(const SharedText& a, const T& b) {
    return a.view() == std::string_view(b);
  }
  template <typename T>
  requires std::convertible_to<const T&, std::string_view>
  friend std::strong_ordering operator<=>(const SharedText& a, const T& b) {
    return a.view() <=> std::string_view(b);
  }

 private:
  /// The text's bytes follow it.
  struct Block {
    std::atomic<std::uint32_t> holders{1};
    std::uint32_t size = 0;
    char* text() { return reinterpret_cast<char*>(this + 1); }
  };

  static Block* Make(std::string_view text) {
    if (text.empty()) return nullptr;
    void* memory = ::operator new(sizeof(Block) + text.size());
    auto* block = new (memory) Block;
    block->size = static_cast<std::uint32_t>(text.size());
    std::memcpy(block->text(), text.data(), text.size());
    return block;
  }

  Block* block_ = nullptr;
};

/// A vector that is empty most of the time, and has 8 bytes then.
template <typename T>
class RareVector {
 public:
  using value_type = T;
  using const_reference = typename std::vector<T>::const_reference;
  using const_iterator = typename std::vector<T>::const_iterator;
  using iterator = const_iterator;

  RareVector() = default;
  RareVector(std::initializer_list<T> values)
      : RareVector(std::vector<T>(values)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): it is a vector, too
  RareVector(std::vector<T> values) {
    if (!values.empty()) {
      values_ = std::make_unique<std::vector<T>>(std::move(values));
    }
  }
  RareVector(const RareVector& other) : RareVector(other.vector()) {}
  RareVector(RareVector&&) noexcept = default;
  RareVector& operator=(const RareVector& other) {
    RareVector copy(other);
    values_ = std::move(copy.values_);
    return *this;
  }
  RareVector& operator=(RareVector&&) noexcept = default;
  ~RareVector() = default;

  /// As an ordinary vector.
  const std::vector<T>& vector() const {
    static const std::vector<T> none;
    return values_ == nullptr ? none : *values_;
  }
  const_iterator begin() const { return vector().begin(); }
  const_iterator end() const { return vector().end(); }
  bool empty() const { return values_ == nullptr; }
  std::size_t size() const { return vector().size(); }
  const_reference operator[](std::size_t i) const { return (*values_)[i]; }
  void push_back(T value) {
    if (values_ == nullptr) values_ = std::make_unique<std::vector<T>>();
    values_->push_back(std::move(value));
  }

  friend bool operator==(const RareVector& a, const RareVector& b) {
    return a.vector() == b.vector();
  }

 private:
  std::unique_ptr<std::vector<T>> values_;  ///< Null instead of empty.
};

/// Values by name: sorted by name, each name once. Adding the names in order
/// is cheap.
template <typename T>
class SortedMap {
 public:
  using Entry = std::pair<SharedText, T>;
  using value_type = Entry;
  using const_iterator = typename std::vector<Entry>::const_iterator;
  using iterator = const_iterator;

  SortedMap() = default;
  SortedMap(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) emplace(entry.first, entry.second);
  }

  /// The value, or nullptr.
  const T* Find(std::string_view name) const {
    const auto at = Place(name);
    return at != entries_.end() && at->first == name ? &at->second : nullptr;
  }
  bool contains(std::string_view name) const { return Find(name) != nullptr; }
  std::size_t count(std::string_view name) const { return contains(name); }
  /// As that of std::map: throws std::out_of_range.
  const T& at(std::string_view name) const {
    const T* value = Find(name);
    if (value == nullptr) throw std::out_of_range(std::string(name));
    return *value;
  }
  /// False when the name is there already; its value stays.
  bool emplace(SharedText name, T value) {
    const auto at = Place(name);
    if (at != entries_.end() && at->first == name) return false;
    entries_.emplace(at, std::move(name), std::move(value));
    return true;
  }
  T& operator[](const SharedText& name) {
    auto at = entries_.begin() + (Place(name) - entries_.cbegin());
    if (at == entries_.end() || at->first != name) {
      at = entries_.emplace(at, name, T());
    }
    return at->second;
  }
  void reserve(std::size_t entries) { entries_.reserve(entries); }

  const_iterator begin() const { return entries_.begin(); }
  const_iterator end() const { return entries_.end(); }
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }

  friend bool operator==(const SortedMap& a, const SortedMap& b) {
    return a.entries_ == b.entries_;
  }

 private:
  const_iterator Place(std::string_view name) const {
    if (entries_.empty() || entries_.back().first < name) return entries_.end();
    return std::lower_bound(
        entries_.begin(), entries_.end(), name,
        [](const Entry& entry, std::string_view n) { return entry.first < n; });
  }

  std::vector<Entry> entries_;
};

}  // namespace devmgr
