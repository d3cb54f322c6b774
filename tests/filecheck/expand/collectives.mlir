// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// Halves are combined as f32, and are halves again when all have been.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf16, [@n]>) -> tensor<?xf16, [@n]> {
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[A]] : (tensor<?xf16, [@n]>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[CALL:\w+]]:2 = stablehlo.custom_call @collective_all_reduce(%[[CONVERT]])
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{groups = [array<i64: 0, 1>], operands = [f32], parameters = {reduction = 2 : i64}, results = [f32, ui8]}>} : (tensor<?xf32, [@n]>)
// CHECK-SAME: -> (tensor<?xf32, [@n]>, tensor<0xui8>)
// CHECK-NEXT: %[[CONVERT2:\w+]] = stablehlo.convert %[[CALL]]#0 : (tensor<?xf32, [@n]>) -> tensor<?xf16, [@n]>
// CHECK-NEXT: return %[[CONVERT2]] : tensor<?xf16, [@n]>
module attributes {disc.participants = 2 : i64, mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<?xf16, [@n]>) -> tensor<?xf16> {
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f16>, %b: tensor<f16>):
      %1 = stablehlo.maximum %a, %b : tensor<f16>
      stablehlo.return %1 : tensor<f16>
    }) : (tensor<?xf16, [@n]>) -> tensor<?xf16>
    return %0 : tensor<?xf16>
  }
}

// -----

// Floats of 32 bits are combined as they are; a number stands for the body.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>) -> tensor<?xf32, [@n]> {
// CHECK-NEXT: %[[CALL:\w+]]:2 = stablehlo.custom_call @collective_all_reduce(%[[A]])
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{groups = [array<i64: 0, 1>], operands = [f32], parameters = {reduction = 1 : i64}, results = [f32, ui8]}>} : (tensor<?xf32, [@n]>)
// CHECK-SAME: -> (tensor<?xf32, [@n]>, tensor<0xui8>)
// CHECK-NEXT: return %[[CALL]]#0 : tensor<?xf32, [@n]>
module attributes {disc.participants = 2 : i64, mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.multiply %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<?xf32, [@n]>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}

// -----

// Several operands have a call each.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?xf32, [@m]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@m]>) {
// CHECK-NEXT: %[[CALL:\w+]]:2 = stablehlo.custom_call @collective_all_reduce(%[[A]])
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{groups = [array<i64: 0, 1>], operands = [f32], parameters = {reduction = 0 : i64}, results = [f32, ui8]}>} : (tensor<?xf32, [@n]>)
// CHECK-SAME: -> (tensor<?xf32, [@n]>, tensor<0xui8>)
// CHECK-NEXT: %[[CALL2:\w+]]:2 = stablehlo.custom_call @collective_all_reduce(%[[B]])
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{groups = [array<i64: 0, 1>], operands = [f32], parameters = {reduction = 0 : i64}, results = [f32, ui8]}>} : (tensor<?xf32, [@m]>)
// CHECK-SAME: -> (tensor<?xf32, [@m]>, tensor<0xui8>)
// CHECK-NEXT: return %[[CALL]]#0, %[[CALL2]]#0 : tensor<?xf32, [@n]>, tensor<?xf32, [@m]>
module attributes {disc.participants = 2 : i64, mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<?xf32, [@m]>) -> (tensor<?xf32>, tensor<?xf32>) {
    %0:2 = "stablehlo.all_reduce"(%x, %y) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<?xf32, [@n]>, tensor<?xf32, [@m]>) -> (tensor<?xf32>, tensor<?xf32>)
    return %0#0, %0#1 : tensor<?xf32>, tensor<?xf32>
  }
}

// -----

// Groups of replicas stand for one group in each partition; narrow integers are combined as i32.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xi8, [@n]>) -> tensor<?xi8, [@"floordiv(n, 2)"]> {
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[A]] : (tensor<?xi8, [@n]>) -> tensor<?xi32, [@n]>
// CHECK-NEXT: %[[CALL:\w+]]:2 = stablehlo.custom_call @collective_reduce_scatter(%[[CONVERT]])
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{groups = [array<i64: 0, 2>, array<i64: 1, 3>], operands = [i32], parameters = {axis = 0 : i64, reduction = 0 : i64}, results = [i32, ui8]}>} : (tensor<?xi32, [@n]>)
// CHECK-SAME: -> (tensor<?xi32, [@"floordiv(n, 2)"]>, tensor<0xui8>)
// CHECK-NEXT: %[[CONVERT2:\w+]] = stablehlo.convert %[[CALL]]#0 : (tensor<?xi32, [@"floordiv(n, 2)"]>)
// CHECK-SAME: -> tensor<?xi8, [@"floordiv(n, 2)"]>
// CHECK-NEXT: return %[[CONVERT2]] : tensor<?xi8, [@"floordiv(n, 2)"]>
module attributes {disc.participants = 4 : i64, mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<?xi8, [@n]>) -> tensor<?xi8> {
    %0 = "stablehlo.reduce_scatter"(%x)
        <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64}> ({
    ^bb0(%a: tensor<i8>, %b: tensor<i8>):
      %1 = stablehlo.add %a, %b : tensor<i8>
      stablehlo.return %1 : tensor<i8>
    }) : (tensor<?xi8, [@n]>) -> tensor<?xi8>
    return %0 : tensor<?xi8>
  }
}

// -----

// A gather names the axis that grows.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>) -> tensor<?xf32, [@"2*n"]> {
// CHECK-NEXT: %[[CALL:\w+]]:2 = stablehlo.custom_call @collective_all_gather(%[[A]])
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{groups = [array<i64: 0, 1>], operands = [f32], parameters = {axis = 0 : i64}, results = [f32, ui8]}>} : (tensor<?xf32, [@n]>)
// CHECK-SAME: -> (tensor<?xf32, [@"2*n"]>, tensor<0xui8>)
// CHECK-NEXT: return %[[CALL]]#0 : tensor<?xf32, [@"2*n"]>
module attributes {disc.participants = 2 : i64, mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
    %0 = "stablehlo.all_gather"(%x)
        <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
        : (tensor<?xf32, [@n]>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}

// -----

// An exchange among partitions names the axis that is split, and the one that grows.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x4xf32, [@n, 4]>) -> tensor<?x2xf32, [@"2*n", 2]> {
// CHECK-NEXT: %[[CALL:\w+]]:2 = stablehlo.custom_call @collective_all_to_all(%[[A]])
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{groups = [array<i64: 0, 1>], operands = [f32], parameters = {axis = 0 : i64, split = 1 : i64}, results = [f32, ui8]}>} : (tensor<?x4xf32, [@n, 4]>)
// CHECK-SAME: -> (tensor<?x2xf32, [@"2*n", 2]>, tensor<0xui8>)
// CHECK-NEXT: return %[[CALL]]#0 : tensor<?x2xf32, [@"2*n", 2]>
module attributes {disc.participants = 2 : i64, mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<?x4xf32, [@n, 4]>) -> tensor<?x2xf32> {
    %0 = "stablehlo.all_to_all"(%x)
        <{split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
        replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<?x4xf32, [@n, 4]>) -> tensor<?x2xf32>
    return %0 : tensor<?x2xf32>
  }
}

// -----

// All of a group get the value of its first participant.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>) -> tensor<?xf32, [@n]> {
// CHECK-NEXT: %[[CALL:\w+]]:2 = stablehlo.custom_call @collective_broadcast(%[[A]])
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{groups = [array<i64: 1, 0>], operands = [f32], results = [f32, ui8]}>} : (tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<0xui8>)
// CHECK-NEXT: return %[[CALL]]#0 : tensor<?xf32, [@n]>
module attributes {disc.participants = 2 : i64, mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
    %0 = "stablehlo.collective_broadcast"(%x) <{replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>}>
        : (tensor<?xf32, [@n]>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}

// -----

// The groups of a permutation are its pairs.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>) -> tensor<?xf32, [@n]> {
// CHECK-NEXT: %[[CALL:\w+]]:2 = stablehlo.custom_call @collective_permute(%[[A]])
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{groups = [array<i64: 1, 0>], operands = [f32], results = [f32, ui8]}>} : (tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<0xui8>)
// CHECK-NEXT: return %[[CALL]]#0 : tensor<?xf32, [@n]>
module attributes {disc.participants = 2 : i64, mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
    %0 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[1, 0]]> : tensor<1x2xi64>}>
        : (tensor<?xf32, [@n]>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}

// -----

// A participant's partition and replica come from its number.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: ) -> (tensor<ui32>, tensor<ui32>) {
// CHECK-NEXT: %[[CALL:\w+]]:2 = stablehlo.custom_call @collective_participant()
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{operands = [], parameters = {divisor = 1 : i64, modulus = 3 : i64}, results = [ui32, ui8]}>} : () -> (tensor<ui32>, tensor<0xui8>)
// CHECK-NEXT: %[[CALL2:\w+]]:2 = stablehlo.custom_call @collective_participant()
// CHECK-SAME: {api_version = 4 : i32, disc.library = #disc.library<{operands = [], parameters = {divisor = 3 : i64, modulus = 2 : i64}, results = [ui32, ui8]}>} : () -> (tensor<ui32>, tensor<0xui8>)
// CHECK-NEXT: return %[[CALL]]#0, %[[CALL2]]#0 : tensor<ui32>, tensor<ui32>
module attributes {disc.participants = 6 : i64, mhlo.num_partitions = 3 : i32, mhlo.num_replicas = 2 : i32} {
  func.func @main() -> (tensor<ui32>, tensor<ui32>) {
    %0 = stablehlo.partition_id : tensor<ui32>
    %1 = stablehlo.replica_id : tensor<ui32>
    return %0, %1 : tensor<ui32>, tensor<ui32>
  }
}

// -----

// A program that runs alone needs no call: its only participant has the number 0.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: ) -> tensor<ui32> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<0> : tensor<ui32>
// CHECK: return %[[CONSTANT]] : tensor<ui32>
func.func @main() -> tensor<ui32> {
  %0 = stablehlo.replica_id : tensor<ui32>
  return %0 : tensor<ui32>
}

// -----

// A group of one needs no call either.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>) -> tensor<?xf32, [@n]> {
// CHECK-NEXT: return %[[A]] : tensor<?xf32, [@n]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>}>
      : (tensor<?xf32, [@n]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A program for two participants is not compiled to run alone.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.all_gather at line {{[0-9]+}}: it is for 2 participants; a program runs on one
module attributes {mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
    %0 = "stablehlo.all_gather"(%x)
        <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
        : (tensor<?xf32, [@n]>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}

// -----

// The runtime does not know other reductions.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.all_reduce at line {{[0-9]+}}: a reduction other than add, multiply, maximum, minimum, and, or, xor has no lowering
module attributes {disc.participants = 2 : i64, mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.subtract %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<?xf32, [@n]>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}
