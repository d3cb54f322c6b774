// RUN: opt --stage annotate --split-input-file %s | filecheck %s

// The state keeps its size, and the bits have the shape that the program states.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.rng_bit_generator %{{.*}}, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3x4xui32>)
func.func @main(%s: tensor<2xui64>) -> (tensor<?xui64>, tensor<3x4xui32>) {
  %0:2 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<?xui64>, tensor<3x4xui32>)
  return %0#0, %0#1 : tensor<?xui64>, tensor<3x4xui32>
}

// -----

// A state as result that never has the size of the one that is given.
// CHECK: error: stablehlo.rng_bit_generator at line {{[0-9]+}}: the sizes 3*n and 2 must be equal and never are
func.func @main(%s: tensor<?xui64, [@"3*n"]>) -> tensor<2xui64> {
  %0:2 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<?xui64, [@"3*n"]>) -> (tensor<2xui64>, tensor<3xui32>)
  return %0#0 : tensor<2xui64>
}

// -----

// A static state as result says what the given state's size is.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: func.func @main(%{{.*}}: tensor<2xui64>) -> tensor<2xui64>
func.func @main(%s: tensor<?xui64, [@n]>) -> tensor<2xui64> {
  %0:2 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<?xui64, [@n]>) -> (tensor<2xui64>, tensor<3xui32>)
  return %0#0 : tensor<2xui64>
}

// -----

// The sizes of the bits are the elements of the second operand.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator({{.*}} -> (tensor<2xui64>, tensor<?x?xui32, [@"2*n", @n]>)
func.func @main(%s: tensor<2xui64>, %x: tensor<?xf32, [@n]>) -> tensor<?x?xui32> {
  %shape = "disc.shape"() {dims = [@"2*n", @n]} : () -> tensor<2xi64>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator(%s, %shape) {rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}
    : (tensor<2xui64>, tensor<2xi64>) -> (tensor<2xui64>, tensor<?x?xui32>)
  return %0#1 : tensor<?x?xui32>
}

// -----

// Sizes of bits that are data are read, and are no less than 0.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.constraint"() {origin = "stablehlo.custom_call at line {{[0-9]+}}", relation = "n0 >= 0"}
// CHECK: "disc.bind"(%{{.*}}) {symbols = [@n0]} : (tensor<1xi32>) -> ()
// CHECK: stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator({{.*}} -> (tensor<2xui64>, tensor<?xui32, [@n0]>)
func.func @main(%s: tensor<2xui64>, %n: tensor<1xi32>) -> tensor<?xui32> {
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator(%s, %n) {rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}
    : (tensor<2xui64>, tensor<1xi32>) -> (tensor<2xui64>, tensor<?xui32>)
  return %0#1 : tensor<?xui32>
}

// -----

// A state that never has the size of the one that the call returns.
// CHECK: error: stablehlo.custom_call at line {{[0-9]+}}: the sizes n + 3 and 2 must be equal and never are
func.func @main(%s: tensor<?xui64, [@"n + 3"]>) -> tensor<?xui32> {
  %shape = "disc.shape"() {dims = [@n]} : () -> tensor<1xi64>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator(%s, %shape) {rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}
    : (tensor<?xui64, [@"n + 3"]>, tensor<1xi64>) -> (tensor<2xui64>, tensor<?xui32>)
  return %0#1 : tensor<?xui32>
}

// -----

// Bits of a size that is never at least 0.
// CHECK: error: stablehlo.custom_call at line {{[0-9]+}}: - n - 1 >= 0 must hold and never does
func.func @main(%s: tensor<2xui64>, %x: tensor<?xf32, [@n]>) -> tensor<?xui32> {
  %shape = "disc.shape"() {dims = [@"-n - 1"]} : () -> tensor<1xi64>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator(%s, %shape) {rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}
    : (tensor<2xui64>, tensor<1xi64>) -> (tensor<2xui64>, tensor<?xui32>)
  return %0#1 : tensor<?xui32>
}

// -----

// The words of a state are known.
// CHECK: error: 1 unsupported construct(s):
// CHECK-NEXT: a state of PHILOX is tensor<2xui64> or tensor<3xui64>
func.func @main(%s: tensor<?xui64, [@n]>) -> (tensor<?xui64>, tensor<3xui32>) {
  %0:2 = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<?xui64, [@n]>) -> (tensor<?xui64>, tensor<3xui32>)
  return %0#0, %0#1 : tensor<?xui64>, tensor<3xui32>
}

// -----

// CHECK: error: 1 unsupported construct(s):
// CHECK-NEXT: a state of THREE_FRY is tensor<2xui64>
func.func @main(%s: tensor<3xui64>) -> (tensor<3xui64>, tensor<3xui32>) {
  %0:2 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<3xui64>) -> (tensor<3xui64>, tensor<3xui32>)
  return %0#0, %0#1 : tensor<3xui64>, tensor<3xui32>
}

// -----

// CHECK: error: 1 unsupported construct(s):
// CHECK-NEXT: it has no rng_algorithm
func.func @main(%s: tensor<2xui64>, %d: tensor<1xi32>) -> (tensor<2xui64>, tensor<?xui32>) {
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator(%s, %d) : (tensor<2xui64>, tensor<1xi32>) -> (tensor<2xui64>, tensor<?xui32>)
  return %0#0, %0#1 : tensor<2xui64>, tensor<?xui32>
}
