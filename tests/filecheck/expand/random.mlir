// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// ThreeFry of 64 bits: a block an element, by its index, and the counter moves on by the number of elements.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<2xui64>, %{{\w+}}: tensor<?xf32, [@n]>) -> (tensor<2xui64>, tensor<?xui64, [@n]>) {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<466688986> : tensor<ui32>
// CHECK-NOT: rng_bit_generator
// CHECK: %[[SLICE:\w+]] = stablehlo.slice %[[A]] [0:1] : (tensor<2xui64>) -> tensor<1xui64>
// CHECK-NEXT: stablehlo.reshape %[[SLICE]] : (tensor<1xui64>) -> tensor<ui64>
// CHECK-NEXT: %[[SLICE2:\w+]] = stablehlo.slice %[[A]] [1:2] : (tensor<2xui64>) -> tensor<1xui64>
// CHECK-NEXT: %[[RESHAPE:\w+]] = stablehlo.reshape %[[SLICE2]] : (tensor<1xui64>) -> tensor<ui64>
// CHECK-NOT: rng_bit_generator
// CHECK: stablehlo.dynamic_iota %{{\w+}}, dim = 0 : (tensor<1xi64>) -> tensor<?xui64, [@n]>
// CHECK-NOT: rng_bit_generator
// CHECK: %[[XOR:\w+]] = stablehlo.xor %{{\w+}}, %{{\w+}} : tensor<ui32>
// CHECK-NEXT: stablehlo.xor %[[XOR]], %[[CONSTANT]] : tensor<ui32>
// CHECK-NOT: rng_bit_generator
// CHECK: %[[SHIFT_LEFT:\w+]] = stablehlo.shift_left %{{\w+}}, %{{\w+}} : tensor<?xui32, [@n]>
// CHECK-NOT: rng_bit_generator
// CHECK: %[[SHIFT_RIGHT_LOGICAL:\w+]] = stablehlo.shift_right_logical %{{\w+}}, %{{\w+}} : tensor<?xui32, [@n]>
// CHECK-NEXT: %[[OR:\w+]] = stablehlo.or %[[SHIFT_LEFT]], %[[SHIFT_RIGHT_LOGICAL]] : tensor<?xui32, [@n]>
// CHECK-NEXT: stablehlo.xor %{{\w+}}, %[[OR]] : tensor<?xui32, [@n]>
// CHECK-NOT: rng_bit_generator
// CHECK: %[[SHIFT_LEFT2:\w+]] = stablehlo.shift_left %{{\w+}}, %{{\w+}} : tensor<?xui64, [@n]>
// CHECK-NEXT: %[[OR2:\w+]] = stablehlo.or %{{\w+}}, %[[SHIFT_LEFT2]] : tensor<?xui64, [@n]>
// CHECK-NEXT: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@n]} : () -> tensor<ui64>
// CHECK-NEXT: %[[ADD:\w+]] = stablehlo.add %[[RESHAPE]], %[[SHAPE]] : tensor<ui64>
// CHECK-NEXT: %[[RESHAPE2:\w+]] = stablehlo.reshape %[[ADD]] : (tensor<ui64>) -> tensor<1xui64>
// CHECK-NEXT: %[[CONCATENATE:\w+]] = stablehlo.concatenate %[[SLICE]], %[[RESHAPE2]], dim = 0
// CHECK-SAME: : (tensor<1xui64>, tensor<1xui64>) -> tensor<2xui64>
// CHECK-NEXT: return %[[CONCATENATE]], %[[OR2]] : tensor<2xui64>, tensor<?xui64, [@n]>
func.func @main(%s: tensor<2xui64>, %x: tensor<?xf32, [@n]>) -> (tensor<2xui64>, tensor<?xui64>) {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32, [@n]>) -> tensor<i32>
  %d = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator(%s, %d)
      {rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}
      : (tensor<2xui64>, tensor<1xi32>) -> (tensor<2xui64>, tensor<?xui64>)
  return %0#0, %0#1 : tensor<2xui64>, tensor<?xui64>
}

// -----

// ThreeFry of 32 bits: a block is two elements, in two halves, and floats are the bits as they are.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{\w+}}: tensor<2xui64>) -> (tensor<2xui64>, tensor<4xf32>) {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<2> : tensor<ui64>
// CHECK-NOT: rng_bit_generator
// CHECK: %[[IOTA:\w+]] = stablehlo.iota dim = 0 : tensor<4xui64>
// CHECK-NOT: rng_bit_generator
// CHECK: stablehlo.shift_right_logical %[[IOTA]], %{{\w+}} : tensor<4xui64>
// CHECK-NEXT: %[[AND:\w+]] = stablehlo.and %[[IOTA]], %{{\w+}} : tensor<4xui64>
// CHECK-NEXT: %[[OR:\w+]] = stablehlo.or %{{\w+}}, %[[AND]] : tensor<4xui64>
// CHECK-NOT: rng_bit_generator
// CHECK: %[[COMPARE:\w+]] = stablehlo.compare EQ, %[[OR]], %{{\w+}} : (tensor<4xui64>, tensor<4xui64>) -> tensor<4xi1>
// CHECK-NEXT: %[[SELECT:\w+]] = stablehlo.select %[[COMPARE]], %{{\w+}}, %{{\w+}} : tensor<4xi1>, tensor<4xui32>
// CHECK-NEXT: %[[ADD:\w+]] = stablehlo.add %{{\w+}}, %[[CONSTANT]] : tensor<ui64>
// CHECK-NEXT: %[[BITCAST_CONVERT:\w+]] = stablehlo.bitcast_convert %[[SELECT]] : (tensor<4xui32>) -> tensor<4xf32>
// CHECK-NEXT: %[[RESHAPE:\w+]] = stablehlo.reshape %[[ADD]] : (tensor<ui64>) -> tensor<1xui64>
// CHECK-NEXT: %[[CONCATENATE:\w+]] = stablehlo.concatenate %{{\w+}}, %[[RESHAPE]], dim = 0
// CHECK-SAME: : (tensor<1xui64>, tensor<1xui64>) -> tensor<2xui64>
// CHECK-NEXT: return %[[CONCATENATE]], %[[BITCAST_CONVERT]] : tensor<2xui64>, tensor<4xf32>
func.func @main(%s: tensor<2xui64>) -> (tensor<2xui64>, tensor<4xf32>) {
  %0, %1 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xf32>)
  return %0, %1 : tensor<2xui64>, tensor<4xf32>
}

// -----

// The default is Philox: a block is four elements, of which narrow ones are cut off.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<3xui64>) -> (tensor<3xui64>, tensor<8xui8>) {
// CHECK-DAG: stablehlo.constant dense<3144134277> : tensor<ui32>
// CHECK-DAG: stablehlo.constant dense<2654435769> : tensor<ui32>
// CHECK-DAG: stablehlo.constant dense<3449720151> : tensor<ui64>
// CHECK-DAG: stablehlo.constant dense<3528531795> : tensor<ui64>
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<2> : tensor<ui64>
// CHECK-DAG: %[[CONSTANT2:\w+]] = stablehlo.constant dense<1> : tensor<ui64>
// CHECK-NOT: rng_bit_generator
// CHECK: stablehlo.slice %[[A]] [2:3] : (tensor<3xui64>) -> tensor<1xui64>
// CHECK-NOT: rng_bit_generator
// CHECK: stablehlo.iota dim = 0 : tensor<8xui64>
// CHECK-NOT: rng_bit_generator
// CHECK: %[[COMPARE:\w+]] = stablehlo.compare LT, %{{\w+}}, %{{\w+}} : (tensor<8xui64>, tensor<8xui64>) -> tensor<8xi1>
// CHECK-NEXT: stablehlo.select %[[COMPARE]], %{{\w+}}, %{{\w+}} : tensor<8xi1>, tensor<8xui64>
// CHECK-NOT: rng_bit_generator
// CHECK: stablehlo.multiply %{{\w+}}, %{{\w+}} : tensor<8xui64>
// CHECK-NOT: rng_bit_generator
// CHECK: stablehlo.multiply %{{\w+}}, %{{\w+}} : tensor<8xui64>
// CHECK-NOT: rng_bit_generator
// CHECK: stablehlo.xor %{{\w+}}, %{{\w+}} : tensor<8xui32>
// CHECK-NOT: rng_bit_generator
// CHECK: %[[COMPARE2:\w+]] = stablehlo.compare EQ, %{{\w+}}, %{{\w+}} : (tensor<8xui64>, tensor<8xui64>)
// CHECK-SAME: -> tensor<8xi1>
// CHECK-NEXT: %[[SELECT:\w+]] = stablehlo.select %[[COMPARE2]], %{{\w+}}, %{{\w+}} : tensor<8xi1>, tensor<8xui32>
// CHECK-NEXT: %[[COMPARE3:\w+]] = stablehlo.compare EQ, %{{\w+}}, %{{\w+}} : (tensor<8xui64>, tensor<8xui64>)
// CHECK-SAME: -> tensor<8xi1>
// CHECK-NEXT: %[[SELECT2:\w+]] = stablehlo.select %[[COMPARE3]], %{{\w+}}, %[[SELECT]] : tensor<8xi1>, tensor<8xui32>
// CHECK-NEXT: %[[COMPARE4:\w+]] = stablehlo.compare EQ, %{{\w+}}, %{{\w+}} : (tensor<8xui64>, tensor<8xui64>)
// CHECK-SAME: -> tensor<8xi1>
// CHECK-NEXT: %[[SELECT3:\w+]] = stablehlo.select %[[COMPARE4]], %{{\w+}}, %[[SELECT2]] : tensor<8xi1>, tensor<8xui32>
// CHECK-NEXT: %[[ADD:\w+]] = stablehlo.add %{{\w+}}, %[[CONSTANT]] : tensor<ui64>
// CHECK-NEXT: %[[ADD2:\w+]] = stablehlo.add %{{\w+}}, %[[CONSTANT2]] : tensor<ui64>
// CHECK-NEXT: %[[COMPARE5:\w+]] = stablehlo.compare LT, %[[ADD]], %{{\w+}} : (tensor<ui64>, tensor<ui64>) -> tensor<i1>
// CHECK-NEXT: %[[SELECT4:\w+]] = stablehlo.select %[[COMPARE5]], %[[ADD2]], %{{\w+}} : tensor<i1>, tensor<ui64>
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[SELECT3]] : (tensor<8xui32>) -> tensor<8xui8>
// CHECK-NEXT: %[[RESHAPE:\w+]] = stablehlo.reshape %[[ADD]] : (tensor<ui64>) -> tensor<1xui64>
// CHECK-NEXT: %[[RESHAPE2:\w+]] = stablehlo.reshape %[[SELECT4]] : (tensor<ui64>) -> tensor<1xui64>
// CHECK-NEXT: %[[CONCATENATE:\w+]] = stablehlo.concatenate %{{\w+}}, %[[RESHAPE]], %[[RESHAPE2]], dim = 0
// CHECK-SAME: : (tensor<1xui64>, tensor<1xui64>, tensor<1xui64>) -> tensor<3xui64>
// CHECK-NEXT: return %[[CONCATENATE]], %[[CONVERT]] : tensor<3xui64>, tensor<8xui8>
func.func @main(%s: tensor<3xui64>) -> (tensor<3xui64>, tensor<8xui8>) {
  %0, %1 = stablehlo.rng_bit_generator %s, algorithm = DEFAULT : (tensor<3xui64>) -> (tensor<3xui64>, tensor<8xui8>)
  return %0, %1 : tensor<3xui64>, tensor<8xui8>
}

// -----

// Philox of 64 bits: a block is two elements.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{\w+}}: tensor<2xui64>) -> (tensor<2xui64>, tensor<4xi64>) {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<2> : tensor<ui64>
// CHECK-NOT: rng_bit_generator
// CHECK: stablehlo.iota dim = 0 : tensor<4xui64>
// CHECK-NOT: rng_bit_generator
// CHECK: %[[COMPARE:\w+]] = stablehlo.compare LT, %{{\w+}}, %{{\w+}} : (tensor<4xui64>, tensor<4xui64>) -> tensor<4xi1>
// CHECK-NEXT: stablehlo.select %[[COMPARE]], %{{\w+}}, %{{\w+}} : tensor<4xi1>, tensor<4xui64>
// CHECK-NOT: rng_bit_generator
// CHECK: %[[COMPARE2:\w+]] = stablehlo.compare EQ, %{{\w+}}, %{{\w+}} : (tensor<4xui64>, tensor<4xui64>)
// CHECK-SAME: -> tensor<4xi1>
// CHECK-NEXT: %[[SELECT:\w+]] = stablehlo.select %[[COMPARE2]], %{{\w+}}, %{{\w+}} : tensor<4xi1>, tensor<4xui64>
// CHECK-NEXT: stablehlo.add %{{\w+}}, %[[CONSTANT]] : tensor<ui64>
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[SELECT]] : (tensor<4xui64>) -> tensor<4xi64>
// CHECK-NOT: rng_bit_generator
// CHECK: %[[CONCATENATE:\w+]] = stablehlo.concatenate %{{\w+}}, %{{\w+}}, dim = 0
// CHECK-SAME: : (tensor<1xui64>, tensor<1xui64>) -> tensor<2xui64>
// CHECK-NEXT: return %[[CONCATENATE]], %[[CONVERT]] : tensor<2xui64>, tensor<4xi64>
func.func @main(%s: tensor<2xui64>) -> (tensor<2xui64>, tensor<4xi64>) {
  %0, %1 = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xi64>)
  return %0, %1 : tensor<2xui64>, tensor<4xi64>
}
