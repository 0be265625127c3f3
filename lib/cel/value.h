// SPDX-License-Identifier: Apache-2.0
//
// The values that expressions compute with. A value is small; what it holds is
// immutable and shared by its copies.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cel/semver.h"
#include "cel/type.h"

namespace devmgr::cel {

// GCC and clang both have it on the 64-bit targets we build for; -Wpedantic
// wants the marker.
__extension__ using Int128 = __int128;

class Value;
struct ListObject;
struct MapObject;

struct Null {};
struct String {
  std::shared_ptr<const std::string> text;
  std::size_t characters =
      0;  ///< Number of characters, counted once since size() is used often.
};
struct Bytes {
  std::shared_ptr<const std::string> data;
};
struct Duration {
  std::int64_t nanos = 0;
};
/// A point in time: seconds since 1970, and 0 to 999,999,999 nanoseconds after
/// that second.
struct Timestamp {
  std::int64_t seconds = 0;
  std::int32_t nanos = 0;
};
struct TypeValue {
  TypeRef type;
};
struct Optional {
  std::shared_ptr<const Value> value;  ///< Null for `optional.none()`.
  int depth = 0;
};
/// A Kubernetes quantity, exact: a number of billionths.
struct QuantityValue {
  std::shared_ptr<const Int128> nanos;
};
struct SemverValue {
  std::shared_ptr<const Semver> version;
};
/// The result of an operation that cannot be done. An operation with such an
/// argument yields that error in turn; `&&`, `||` and the macros that are made
/// of them ignore it when their other operand decides.
struct Error {
  std::shared_ptr<const std::string> message;
};
using List = std::shared_ptr<ListObject>;
using Map = std::shared_ptr<MapObject>;

class Value {
 public:
  using Data = std::variant<Null, bool, std::int64_t, std::uint64_t, double,
                            String, Bytes, Duration, Timestamp, TypeValue, List,
                            Map, Optional, QuantityValue, SemverValue, Error>;

  Value() = default;
  template <typename T>
  static Value Of(T data) {
    Value value;
    value.data_ = std::move(data);
    return value;
  }
  static Value Bool(bool value) { return Of(value); }
  static Value Int(std::int64_t value) { return Of(value); }
  static Value Uint(std::uint64_t value) { return Of(value); }
  static Value Double(double value) { return Of(value); }
  static Value Text(std::string text);
  static Value OfBytes(std::string data);
  static Value ListOf(std::vector<Value> elements);
  static Value OptionalOf(Value value);
  static Value OptionalNone() { return Of(Optional{}); }
  static Value Quantity(Int128 nanos);
  static Value Version(Semver version);
  static Value OfType(TypeRef type) { return Of(TypeValue{std::move(type)}); }
  static Value Failed(std::string message);

  template <typename T>
  const T* As() const {
    return std::get_if<T>(&data_);
  }
  template <typename T>
  bool Is() const {
    return std::holds_alternative<T>(data_);
  }
  bool IsError() const { return Is<Error>(); }
  /// The text of a string. The value must be a string.
  const std::string& text() const { return *std::get<String>(data_).text; }
  /// The message of an error. The value must be an error.
  const std::string& message() const { return *std::get<Error>(data_).message; }
  const Data& data() const { return data_; }

 private:
  Data data_;
};

/// How deep lists, maps and optionals may hold each other.
constexpr int kMaxValueDepth = 500;
/// How many levels of lists, maps and optionals `value` has; 0 when it is none
/// of these.
int DepthOf(const Value& value);

/// A list. It is changed only while it is being built; afterwards it is
/// immutable.
struct ListObject {
  std::vector<Value> elements;
  int depth = 1;
  /// True while the list is the accumulator of a running comprehension: `+`
  /// then appends to this list instead of copying it.
  bool growing = false;
};

struct MapEntry {
  Value key;
  Value value;
};

/// A map. Its entries keep the order in which they were inserted; a sorted
/// index finds keys.
struct MapObject {
  /// The value of the entry whose key equals `key`, numbers being compared
  /// across their types. Null when there is no such entry.
  const Value* Find(const Value& key) const;
  /// Adds an entry. Returns false, and changes nothing, when the map has the
  /// key. IsLegalKey(key) must hold.
  bool Insert(Value key, Value value);
  /// Adds an entry, or replaces the value of the one that has `key`.
  /// IsLegalKey(key) must hold.
  void Set(Value key, Value value);

  const std::vector<MapEntry>& entries() const { return entries_; }
  void Reserve(std::size_t entries) {
    entries_.reserve(entries);
    order_.reserve(entries);
  }

  /// The value of each key that the map lacks, if it is set. The maps of a
  /// device have it, since every domain may be looked up. The operator `in`
  /// ignores it.
  std::shared_ptr<const Value> fallback;
  int depth = 1;
  /// As ListObject::growing, for the insertion of an entry.
  bool growing = false;

 private:
  /// The index in `order_` where `key` is, or where it has to be inserted.
  std::size_t PlaceOf(const Value& key, bool& found) const;

  std::vector<MapEntry> entries_;
  std::vector<std::uint32_t>
      order_;  ///< Indices into `entries_`, sorted by key.
};

/// Whether `value` may be the key of a map: a bool, int, uint or string.
bool IsLegalKey(const Value& value);

/// The type of a value at run time. The types of its elements are not looked
/// at: every list is a `list(dyn)`.
TypeRef TypeOf(const Value& value);

/// The number of characters of a string, of bytes, of the elements of a list or
/// of the entries of a map; 1 for any other value. With `through_optional` an
/// optional has the size of the value that it holds.
std::uint64_t SizeOf(const Value& value, bool through_optional = true);

/// The value for messages and tests, written much as the literal would be. A
/// long text is cut.
std::string Describe(const Value& value);

}  // namespace devmgr::cel
