// SPDX-License-Identifier: Apache-2.0
//
// Values as expressions work with them: small, immutable, shared.
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
  std::size_t characters = 0;  ///< How many there are: sizes are asked often.
};
struct Bytes {
  std::shared_ptr<const std::string> data;
};
struct Duration {
  std::int64_t nanos = 0;
};
/// Seconds since 1970, and nanoseconds from 0 on.
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
/// A Kubernetes quantity: exact, in nanos.
struct QuantityValue {
  std::shared_ptr<const Int128> nanos;
};
struct SemverValue {
  std::shared_ptr<const Semver> version;
};
/// What an operation that cannot be done yields. It spreads through whatever
/// uses it, except where `&&`, `||` and their macros can do without.
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
  /// `text` of a string. Must be one.
  const std::string& text() const { return *std::get<String>(data_).text; }
  /// The message of an error. Must be one.
  const std::string& message() const { return *std::get<Error>(data_).message; }
  const Data& data() const { return data_; }

 private:
  Data data_;
};

/// How deep lists, maps and optionals may hold each other.
constexpr int kMaxValueDepth = 500;
/// 0 for what holds no other value.
int DepthOf(const Value& value);

/// Lists and maps are written only while they are made.
struct ListObject {
  std::vector<Value> elements;
  int depth = 1;
  /// Of a comprehension that is running: `+` appends in place.
  bool growing = false;
};

struct MapEntry {
  Value key;
  Value value;
};

/// Entries in the order in which they came. Keys are found by a sorted index.
struct MapObject {
  /// The value of `key`, by the language's equality of numbers; else null.
  const Value* Find(const Value& key) const;
  /// False when the key is there already. `key` must be a legal key.
  bool Insert(Value key, Value value);
  /// The same, in place of what `key` had before.
  void Set(Value key, Value value);

  const std::vector<MapEntry>& entries() const { return entries_; }

  /// What a look-up of any other key yields, where set: the domains of devices
  /// answer each name. `in` does not see it.
  std::shared_ptr<const Value> fallback;
  int depth = 1;
  bool growing = false;

 private:
  /// The place in `order_` where `key` is, or belongs.
  std::size_t PlaceOf(const Value& key, bool& found) const;

  std::vector<MapEntry> entries_;
  std::vector<std::uint32_t> order_;  ///< Indices of `entries_`, by key.
};

/// bool, int, uint and string may be keys of maps.
bool IsLegalKey(const Value& value);

/// The type of a value at run time: `list` of dyn for any list.
TypeRef TypeOf(const Value& value);

/// The number of characters, bytes, elements or entries; 1 for all else. What
/// an optional holds counts in its place if `through_optional`.
std::uint64_t SizeOf(const Value& value, bool through_optional = true);

/// For messages and tests: about the literal that makes the value.
std::string Describe(const Value& value);

}  // namespace devmgr::cel
