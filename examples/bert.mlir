module @jit_forward attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<64xf32>, %arg1: tensor<64xf32>, %arg2: tensor<64xf32>, %arg3: tensor<64x64xf32>, %arg4: tensor<64xf32>, %arg5: tensor<128x64xf32>, %arg6: tensor<128xf32>, %arg7: tensor<64x128xf32>, %arg8: tensor<64xf32>, %arg9: tensor<64xf32>, %arg10: tensor<64xf32>, %arg11: tensor<64x64xf32>, %arg12: tensor<64xf32>, %arg13: tensor<64x64xf32>, %arg14: tensor<64xf32>, %arg15: tensor<64x64xf32>, %arg16: tensor<64xf32>, %arg17: tensor<64xf32>, %arg18: tensor<64xf32>, %arg19: tensor<64x64xf32>, %arg20: tensor<64xf32>, %arg21: tensor<128x64xf32>, %arg22: tensor<128xf32>, %arg23: tensor<64x128xf32>, %arg24: tensor<64xf32>, %arg25: tensor<64xf32>, %arg26: tensor<64xf32>, %arg27: tensor<64x64xf32>, %arg28: tensor<64xf32>, %arg29: tensor<64x64xf32>, %arg30: tensor<64xf32>, %arg31: tensor<64x64xf32>, %arg32: tensor<64xf32>, %arg33: tensor<64xf32>, %arg34: tensor<48x64xf32>, %arg35: tensor<2x64xf32>, %arg36: tensor<211x64xf32>, %arg37: tensor<?x?xi32>, %arg38: tensor<?x?xi32>, %arg39: tensor<?x?xi32>) -> (tensor<?x?x64xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<48> : tensor<i32>
    %c_1 = stablehlo.constant dense<-1> : tensor<i32>
    %c_2 = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.get_dimension_size %arg37, dim = 0 : (tensor<?x?xi32>) -> tensor<i32>
    %1 = stablehlo.get_dimension_size %arg37, dim = 1 : (tensor<?x?xi32>) -> tensor<i32>
    %2 = stablehlo.get_dimension_size %arg38, dim = 0 : (tensor<?x?xi32>) -> tensor<i32>
    %3 = stablehlo.get_dimension_size %arg38, dim = 1 : (tensor<?x?xi32>) -> tensor<i32>
    %4 = stablehlo.get_dimension_size %arg39, dim = 0 : (tensor<?x?xi32>) -> tensor<i32>
    %5 = stablehlo.get_dimension_size %arg39, dim = 1 : (tensor<?x?xi32>) -> tensor<i32>
    %6 = stablehlo.compare GE, %0, %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%6, %0) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension variable 'b'. Using the following polymorphic shapes specifications: args[1].shape = (b, s),args[2].shape = (b, s),args[3].shape = (b, s). Obtained dimension variables: 'b' = {0} from specification 'b' for dimension args[1].shape[0] (= {0}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
    %7 = stablehlo.compare GE, %1, %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%7, %0, %1) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension variable 's'. Using the following polymorphic shapes specifications: args[1].shape = (b, s),args[2].shape = (b, s),args[3].shape = (b, s). Obtained dimension variables: 'b' = {0} from specification 'b' for dimension args[1].shape[0] (= {0}), 's' = {1} from specification 's' for dimension args[1].shape[1] (= {1}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()
    %8 = stablehlo.compare EQ, %2, %0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%8, %2, %0, %1) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Found inconsistency between dimension size args[2].shape[0] (= {0}) and the specification 'b' (= {1}). Using the following polymorphic shapes specifications: args[1].shape = (b, s),args[2].shape = (b, s),args[3].shape = (b, s). Obtained dimension variables: 'b' = {1} from specification 'b' for dimension args[1].shape[0] (= {1}), 's' = {2} from specification 's' for dimension args[1].shape[1] (= {2}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>, tensor<i32>, tensor<i32>) -> ()
    %9 = stablehlo.compare EQ, %3, %1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%9, %3, %1, %0) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Found inconsistency between dimension size args[2].shape[1] (= {0}) and the specification 's' (= {1}). Using the following polymorphic shapes specifications: args[1].shape = (b, s),args[2].shape = (b, s),args[3].shape = (b, s). Obtained dimension variables: 'b' = {2} from specification 'b' for dimension args[1].shape[0] (= {2}), 's' = {1} from specification 's' for dimension args[1].shape[1] (= {1}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>, tensor<i32>, tensor<i32>) -> ()
    %10 = stablehlo.compare EQ, %4, %0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%10, %4, %0, %1) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Found inconsistency between dimension size args[3].shape[0] (= {0}) and the specification 'b' (= {1}). Using the following polymorphic shapes specifications: args[1].shape = (b, s),args[2].shape = (b, s),args[3].shape = (b, s). Obtained dimension variables: 'b' = {1} from specification 'b' for dimension args[1].shape[0] (= {1}), 's' = {2} from specification 's' for dimension args[1].shape[1] (= {2}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>, tensor<i32>, tensor<i32>) -> ()
    %11 = stablehlo.compare EQ, %5, %1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%11, %5, %1, %0) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Found inconsistency between dimension size args[3].shape[1] (= {0}) and the specification 's' (= {1}). Using the following polymorphic shapes specifications: args[1].shape = (b, s),args[2].shape = (b, s),args[3].shape = (b, s). Obtained dimension variables: 'b' = {2} from specification 'b' for dimension args[1].shape[0] (= {2}), 's' = {1} from specification 's' for dimension args[1].shape[1] (= {1}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>, tensor<i32>, tensor<i32>) -> ()
    %12 = stablehlo.convert %1 : tensor<i32>
    %13 = stablehlo.multiply %12, %c_1 : tensor<i32>
    %14 = stablehlo.add %13, %c_0 : tensor<i32>
    %15 = stablehlo.compare GE, %14, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %16 = stablehlo.convert %1 : tensor<i32>
    %17 = stablehlo.multiply %16, %c_1 : tensor<i32>
    %18 = stablehlo.add %17, %c_0 : tensor<i32>
    stablehlo.custom_call @shape_assertion(%15, %18, %0, %1) {api_version = 2 : i32, error_message = "Input shapes do not match the symbolic shape constraint s <= 48. Expected '- s + 48' to be greater or equal to 0, but found {0}.  Using the following polymorphic shapes specifications: args[1].shape = (b, s),args[2].shape = (b, s),args[3].shape = (b, s). Obtained dimension variables: 'b' = {1} from specification 'b' for dimension args[1].shape[0] (= {1}), 's' = {2} from specification 's' for dimension args[1].shape[1] (= {2}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>, tensor<i32>, tensor<i32>) -> ()
    %19 = call @_wrapped_jax_export_main(%0, %1, %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9, %arg10, %arg11, %arg12, %arg13, %arg14, %arg15, %arg16, %arg17, %arg18, %arg19, %arg20, %arg21, %arg22, %arg23, %arg24, %arg25, %arg26, %arg27, %arg28, %arg29, %arg30, %arg31, %arg32, %arg33, %arg34, %arg35, %arg36, %arg37, %arg38, %arg39) : (tensor<i32>, tensor<i32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<128x64xf32>, tensor<128xf32>, tensor<64x128xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<128x64xf32>, tensor<128xf32>, tensor<64x128xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<48x64xf32>, tensor<2x64xf32>, tensor<211x64xf32>, tensor<?x?xi32>, tensor<?x?xi32>, tensor<?x?xi32>) -> tensor<?x?x64xf32>
    return %19 : tensor<?x?x64xf32>
  }
  func.func private @_wrapped_jax_export_main(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<i32> {jax.global_constant = "s"}, %arg2: tensor<64xf32>, %arg3: tensor<64xf32>, %arg4: tensor<64xf32>, %arg5: tensor<64x64xf32>, %arg6: tensor<64xf32>, %arg7: tensor<128x64xf32>, %arg8: tensor<128xf32>, %arg9: tensor<64x128xf32>, %arg10: tensor<64xf32>, %arg11: tensor<64xf32>, %arg12: tensor<64xf32>, %arg13: tensor<64x64xf32>, %arg14: tensor<64xf32>, %arg15: tensor<64x64xf32>, %arg16: tensor<64xf32>, %arg17: tensor<64x64xf32>, %arg18: tensor<64xf32>, %arg19: tensor<64xf32>, %arg20: tensor<64xf32>, %arg21: tensor<64x64xf32>, %arg22: tensor<64xf32>, %arg23: tensor<128x64xf32>, %arg24: tensor<128xf32>, %arg25: tensor<64x128xf32>, %arg26: tensor<64xf32>, %arg27: tensor<64xf32>, %arg28: tensor<64xf32>, %arg29: tensor<64x64xf32>, %arg30: tensor<64xf32>, %arg31: tensor<64x64xf32>, %arg32: tensor<64xf32>, %arg33: tensor<64x64xf32>, %arg34: tensor<64xf32>, %arg35: tensor<64xf32>, %arg36: tensor<48x64xf32>, %arg37: tensor<2x64xf32>, %arg38: tensor<211x64xf32>, %arg39: tensor<?x?xi32>, %arg40: tensor<?x?xi32>, %arg41: tensor<?x?xi32>) -> (tensor<?x?x64xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.707106769> : tensor<f32>
    %cst_0 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %c = stablehlo.constant dense<128> : tensor<1xi32>
    %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_2 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %c_3 = stablehlo.constant dense<16> : tensor<1xi32>
    %c_4 = stablehlo.constant dense<4> : tensor<1xi32>
    %cst_5 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_7 = stablehlo.constant dense<9.99999996E-13> : tensor<f32>
    %cst_8 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c_10 = stablehlo.constant dense<2> : tensor<i32>
    %c_11 = stablehlo.constant dense<64> : tensor<1xi32>
    %c_12 = stablehlo.constant dense<1> : tensor<1xi32>
    %c_13 = stablehlo.constant dense<211> : tensor<i32>
    %c_14 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %3 = stablehlo.dynamic_broadcast_in_dim %c_14, %2, dims = [] : (tensor<i32>, tensor<2xi32>) -> tensor<?x?xi32>
    %4 = stablehlo.compare LT, %arg39, %3, SIGNED : (tensor<?x?xi32>, tensor<?x?xi32>) -> tensor<?x?xi1>
    %5 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %6 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %7 = stablehlo.concatenate %5, %6, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %8 = stablehlo.dynamic_broadcast_in_dim %c_13, %7, dims = [] : (tensor<i32>, tensor<2xi32>) -> tensor<?x?xi32>
    %9 = stablehlo.add %arg39, %8 : tensor<?x?xi32>
    %10 = stablehlo.select %4, %9, %arg39 : tensor<?x?xi1>, tensor<?x?xi32>
    %11 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %12 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %13 = stablehlo.concatenate %11, %12, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %14 = stablehlo.dynamic_broadcast_in_dim %10, %13, dims = [0, 1] : (tensor<?x?xi32>, tensor<3xi32>) -> tensor<?x?x1xi32>
    %15 = "stablehlo.gather"(%arg38, %14) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 64>}> : (tensor<211x64xf32>, tensor<?x?x1xi32>) -> tensor<?x?x64xf32>
    %16 = stablehlo.broadcast_in_dim %c_14, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %17 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %18 = stablehlo.concatenate %17, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %19 = "stablehlo.dynamic_gather"(%arg36, %16, %18) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [0]>, indices_are_sorted = true}> : (tensor<48x64xf32>, tensor<1xi32>, tensor<2xi32>) -> tensor<?x64xf32>
    %20 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %21 = stablehlo.concatenate %c_12, %20, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %22 = stablehlo.dynamic_broadcast_in_dim %19, %21, dims = [1, 2] : (tensor<?x64xf32>, tensor<3xi32>) -> tensor<1x?x64xf32>
    %23 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %24 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %25 = stablehlo.concatenate %23, %24, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %26 = stablehlo.dynamic_broadcast_in_dim %22, %25, dims = [0, 1, 2] : (tensor<1x?x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %27 = stablehlo.add %15, %26 : tensor<?x?x64xf32>
    %28 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %29 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %30 = stablehlo.concatenate %28, %29, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %31 = stablehlo.dynamic_broadcast_in_dim %c_14, %30, dims = [] : (tensor<i32>, tensor<2xi32>) -> tensor<?x?xi32>
    %32 = stablehlo.compare LT, %arg40, %31, SIGNED : (tensor<?x?xi32>, tensor<?x?xi32>) -> tensor<?x?xi1>
    %33 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %34 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %35 = stablehlo.concatenate %33, %34, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %36 = stablehlo.dynamic_broadcast_in_dim %c_10, %35, dims = [] : (tensor<i32>, tensor<2xi32>) -> tensor<?x?xi32>
    %37 = stablehlo.add %arg40, %36 : tensor<?x?xi32>
    %38 = stablehlo.select %32, %37, %arg40 : tensor<?x?xi1>, tensor<?x?xi32>
    %39 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %40 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %41 = stablehlo.concatenate %39, %40, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %42 = stablehlo.dynamic_broadcast_in_dim %38, %41, dims = [0, 1] : (tensor<?x?xi32>, tensor<3xi32>) -> tensor<?x?x1xi32>
    %43 = "stablehlo.gather"(%arg37, %42) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 64>}> : (tensor<2x64xf32>, tensor<?x?x1xi32>) -> tensor<?x?x64xf32>
    %44 = stablehlo.add %27, %43 : tensor<?x?x64xf32>
    %45 = stablehlo.reduce(%44 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<?x?x64xf32>, tensor<f32>) -> tensor<?x?xf32>
    %46 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %47 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %48 = stablehlo.concatenate %46, %47, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %49 = stablehlo.dynamic_broadcast_in_dim %45, %48, dims = [0, 1] : (tensor<?x?xf32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %50 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %51 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %52 = stablehlo.concatenate %50, %51, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %53 = stablehlo.dynamic_broadcast_in_dim %cst_8, %52, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %54 = stablehlo.divide %49, %53 : tensor<?x?x1xf32>
    %55 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %56 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %57 = stablehlo.concatenate %55, %56, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %58 = stablehlo.dynamic_broadcast_in_dim %54, %57, dims = [0, 1, 2] : (tensor<?x?x1xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %59 = stablehlo.subtract %44, %58 : tensor<?x?x64xf32>
    %60 = stablehlo.multiply %59, %59 : tensor<?x?x64xf32>
    %61 = stablehlo.reduce(%60 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<?x?x64xf32>, tensor<f32>) -> tensor<?x?xf32>
    %62 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %63 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %64 = stablehlo.concatenate %62, %63, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %65 = stablehlo.dynamic_broadcast_in_dim %61, %64, dims = [0, 1] : (tensor<?x?xf32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %66 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %67 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %68 = stablehlo.concatenate %66, %67, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %69 = stablehlo.dynamic_broadcast_in_dim %cst_8, %68, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %70 = stablehlo.divide %65, %69 : tensor<?x?x1xf32>
    %71 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %72 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %73 = stablehlo.concatenate %71, %72, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %74 = stablehlo.dynamic_broadcast_in_dim %cst_7, %73, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %75 = stablehlo.add %70, %74 : tensor<?x?x1xf32>
    %76 = stablehlo.rsqrt %75 : tensor<?x?x1xf32>
    %77 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %78 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %79 = stablehlo.concatenate %77, %78, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %80 = stablehlo.dynamic_broadcast_in_dim %76, %79, dims = [0, 1, 2] : (tensor<?x?x1xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %81 = stablehlo.multiply %59, %80 : tensor<?x?x64xf32>
    %82 = stablehlo.broadcast_in_dim %arg35, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %83 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %84 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %85 = stablehlo.concatenate %83, %84, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %86 = stablehlo.dynamic_broadcast_in_dim %82, %85, dims = [0, 1, 2] : (tensor<1x1x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %87 = stablehlo.multiply %81, %86 : tensor<?x?x64xf32>
    %88 = stablehlo.broadcast_in_dim %arg34, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %89 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %90 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %91 = stablehlo.concatenate %89, %90, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %92 = stablehlo.dynamic_broadcast_in_dim %88, %91, dims = [0, 1, 2] : (tensor<1x1x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %93 = stablehlo.add %87, %92 : tensor<?x?x64xf32>
    %94 = stablehlo.convert %arg41 : (tensor<?x?xi32>) -> tensor<?x?xf32>
    %95 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %96 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %97 = stablehlo.concatenate %95, %96, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %98 = stablehlo.dynamic_broadcast_in_dim %cst_6, %97, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x?xf32>
    %99 = stablehlo.subtract %98, %94 : tensor<?x?xf32>
    %100 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %101 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %102 = stablehlo.concatenate %100, %c_12, %c_12, %101, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %103 = stablehlo.dynamic_broadcast_in_dim %99, %102, dims = [0, 3] : (tensor<?x?xf32>, tensor<4xi32>) -> tensor<?x1x1x?xf32>
    %104 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %105 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %106 = stablehlo.concatenate %104, %c_12, %c_12, %105, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %107 = stablehlo.dynamic_broadcast_in_dim %cst_5, %106, dims = [] : (tensor<f32>, tensor<4xi32>) -> tensor<?x1x1x?xf32>
    %108 = stablehlo.multiply %103, %107 : tensor<?x1x1x?xf32>
    %109 = stablehlo.dot_general %93, %arg15, contracting_dims = [2] x [0] : (tensor<?x?x64xf32>, tensor<64x64xf32>) -> tensor<?x?x64xf32>
    %110 = stablehlo.broadcast_in_dim %arg14, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %111 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %112 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %113 = stablehlo.concatenate %111, %112, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %114 = stablehlo.dynamic_broadcast_in_dim %110, %113, dims = [0, 1, 2] : (tensor<1x1x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %115 = stablehlo.add %109, %114 : tensor<?x?x64xf32>
    %116 = stablehlo.dot_general %93, %arg5, contracting_dims = [2] x [0] : (tensor<?x?x64xf32>, tensor<64x64xf32>) -> tensor<?x?x64xf32>
    %117 = stablehlo.broadcast_in_dim %arg4, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %118 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %119 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %120 = stablehlo.concatenate %118, %119, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %121 = stablehlo.dynamic_broadcast_in_dim %117, %120, dims = [0, 1, 2] : (tensor<1x1x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %122 = stablehlo.add %116, %121 : tensor<?x?x64xf32>
    %123 = stablehlo.dot_general %93, %arg17, contracting_dims = [2] x [0] : (tensor<?x?x64xf32>, tensor<64x64xf32>) -> tensor<?x?x64xf32>
    %124 = stablehlo.broadcast_in_dim %arg16, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %125 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %126 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %127 = stablehlo.concatenate %125, %126, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %128 = stablehlo.dynamic_broadcast_in_dim %124, %127, dims = [0, 1, 2] : (tensor<1x1x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %129 = stablehlo.add %123, %128 : tensor<?x?x64xf32>
    %130 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %131 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %132 = stablehlo.concatenate %130, %131, %c_4, %c_3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %133 = stablehlo.dynamic_reshape %115, %132 : (tensor<?x?x64xf32>, tensor<4xi32>) -> tensor<?x?x4x16xf32>
    %134 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %135 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %136 = stablehlo.concatenate %134, %135, %c_4, %c_3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %137 = stablehlo.dynamic_reshape %122, %136 : (tensor<?x?x64xf32>, tensor<4xi32>) -> tensor<?x?x4x16xf32>
    %138 = stablehlo.dot_general %133, %137, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<?x?x4x16xf32>, tensor<?x?x4x16xf32>) -> tensor<?x4x?x?xf32>
    %139 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %140 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %141 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %142 = stablehlo.concatenate %139, %c_4, %140, %141, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %143 = stablehlo.dynamic_broadcast_in_dim %cst_2, %142, dims = [] : (tensor<f32>, tensor<4xi32>) -> tensor<?x4x?x?xf32>
    %144 = stablehlo.multiply %138, %143 : tensor<?x4x?x?xf32>
    %145 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %146 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %147 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %148 = stablehlo.concatenate %145, %c_4, %146, %147, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %149 = stablehlo.dynamic_broadcast_in_dim %108, %148, dims = [0, 1, 2, 3] : (tensor<?x1x1x?xf32>, tensor<4xi32>) -> tensor<?x4x?x?xf32>
    %150 = stablehlo.add %144, %149 : tensor<?x4x?x?xf32>
    %151 = stablehlo.reduce(%150 init: %cst_1) applies stablehlo.maximum across dimensions = [3] : (tensor<?x4x?x?xf32>, tensor<f32>) -> tensor<?x4x?xf32>
    %152 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %153 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %154 = stablehlo.concatenate %152, %c_4, %153, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %155 = stablehlo.dynamic_broadcast_in_dim %cst_1, %154, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x4x?xf32>
    %156 = stablehlo.maximum %155, %151 : tensor<?x4x?xf32>
    %157 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %158 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %159 = stablehlo.concatenate %157, %c_4, %158, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %160 = stablehlo.dynamic_broadcast_in_dim %156, %159, dims = [0, 1, 2] : (tensor<?x4x?xf32>, tensor<4xi32>) -> tensor<?x4x?x1xf32>
    %161 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %162 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %163 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %164 = stablehlo.concatenate %161, %c_4, %162, %163, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %165 = stablehlo.dynamic_broadcast_in_dim %160, %164, dims = [0, 1, 2, 3] : (tensor<?x4x?x1xf32>, tensor<4xi32>) -> tensor<?x4x?x?xf32>
    %166 = stablehlo.subtract %150, %165 : tensor<?x4x?x?xf32>
    %167 = stablehlo.exponential %166 : tensor<?x4x?x?xf32>
    %168 = stablehlo.reduce(%167 init: %cst_9) applies stablehlo.add across dimensions = [3] : (tensor<?x4x?x?xf32>, tensor<f32>) -> tensor<?x4x?xf32>
    %169 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %170 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %171 = stablehlo.concatenate %169, %c_4, %170, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %172 = stablehlo.dynamic_broadcast_in_dim %168, %171, dims = [0, 1, 2] : (tensor<?x4x?xf32>, tensor<4xi32>) -> tensor<?x4x?x1xf32>
    %173 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %174 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %175 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %176 = stablehlo.concatenate %173, %c_4, %174, %175, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %177 = stablehlo.dynamic_broadcast_in_dim %172, %176, dims = [0, 1, 2, 3] : (tensor<?x4x?x1xf32>, tensor<4xi32>) -> tensor<?x4x?x?xf32>
    %178 = stablehlo.divide %167, %177 : tensor<?x4x?x?xf32>
    %179 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %180 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %181 = stablehlo.concatenate %179, %180, %c_4, %c_3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %182 = stablehlo.dynamic_reshape %129, %181 : (tensor<?x?x64xf32>, tensor<4xi32>) -> tensor<?x?x4x16xf32>
    %183 = stablehlo.dot_general %182, %178, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3] : (tensor<?x?x4x16xf32>, tensor<?x4x?x?xf32>) -> tensor<?x4x16x?xf32>
    %184 = stablehlo.transpose %183, dims = [0, 3, 1, 2] : (tensor<?x4x16x?xf32>) -> tensor<?x?x4x16xf32>
    %185 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %186 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %187 = stablehlo.concatenate %185, %186, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %188 = stablehlo.dynamic_reshape %184, %187 : (tensor<?x?x4x16xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %189 = stablehlo.dot_general %188, %arg13, contracting_dims = [2] x [0] : (tensor<?x?x64xf32>, tensor<64x64xf32>) -> tensor<?x?x64xf32>
    %190 = stablehlo.broadcast_in_dim %arg12, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %191 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %192 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %193 = stablehlo.concatenate %191, %192, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %194 = stablehlo.dynamic_broadcast_in_dim %190, %193, dims = [0, 1, 2] : (tensor<1x1x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %195 = stablehlo.add %189, %194 : tensor<?x?x64xf32>
    %196 = stablehlo.add %93, %195 : tensor<?x?x64xf32>
    %197 = stablehlo.reduce(%196 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<?x?x64xf32>, tensor<f32>) -> tensor<?x?xf32>
    %198 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %199 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %200 = stablehlo.concatenate %198, %199, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %201 = stablehlo.dynamic_broadcast_in_dim %197, %200, dims = [0, 1] : (tensor<?x?xf32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %202 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %203 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %204 = stablehlo.concatenate %202, %203, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %205 = stablehlo.dynamic_broadcast_in_dim %cst_8, %204, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %206 = stablehlo.divide %201, %205 : tensor<?x?x1xf32>
    %207 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %208 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %209 = stablehlo.concatenate %207, %208, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %210 = stablehlo.dynamic_broadcast_in_dim %206, %209, dims = [0, 1, 2] : (tensor<?x?x1xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %211 = stablehlo.subtract %196, %210 : tensor<?x?x64xf32>
    %212 = stablehlo.multiply %211, %211 : tensor<?x?x64xf32>
    %213 = stablehlo.reduce(%212 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<?x?x64xf32>, tensor<f32>) -> tensor<?x?xf32>
    %214 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %215 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %216 = stablehlo.concatenate %214, %215, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %217 = stablehlo.dynamic_broadcast_in_dim %213, %216, dims = [0, 1] : (tensor<?x?xf32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %218 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %219 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %220 = stablehlo.concatenate %218, %219, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %221 = stablehlo.dynamic_broadcast_in_dim %cst_8, %220, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %222 = stablehlo.divide %217, %221 : tensor<?x?x1xf32>
    %223 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %224 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %225 = stablehlo.concatenate %223, %224, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %226 = stablehlo.dynamic_broadcast_in_dim %cst_7, %225, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %227 = stablehlo.add %222, %226 : tensor<?x?x1xf32>
    %228 = stablehlo.rsqrt %227 : tensor<?x?x1xf32>
    %229 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %230 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %231 = stablehlo.concatenate %229, %230, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %232 = stablehlo.dynamic_broadcast_in_dim %228, %231, dims = [0, 1, 2] : (tensor<?x?x1xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %233 = stablehlo.multiply %211, %232 : tensor<?x?x64xf32>
    %234 = stablehlo.broadcast_in_dim %arg3, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %235 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %236 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %237 = stablehlo.concatenate %235, %236, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %238 = stablehlo.dynamic_broadcast_in_dim %234, %237, dims = [0, 1, 2] : (tensor<1x1x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %239 = stablehlo.multiply %233, %238 : tensor<?x?x64xf32>
    %240 = stablehlo.broadcast_in_dim %arg2, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %241 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %242 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %243 = stablehlo.concatenate %241, %242, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %244 = stablehlo.dynamic_broadcast_in_dim %240, %243, dims = [0, 1, 2] : (tensor<1x1x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %245 = stablehlo.add %239, %244 : tensor<?x?x64xf32>
    %246 = stablehlo.dot_general %245, %arg9, contracting_dims = [2] x [0] : (tensor<?x?x64xf32>, tensor<64x128xf32>) -> tensor<?x?x128xf32>
    %247 = stablehlo.broadcast_in_dim %arg8, dims = [2] : (tensor<128xf32>) -> tensor<1x1x128xf32>
    %248 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %249 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %250 = stablehlo.concatenate %248, %249, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %251 = stablehlo.dynamic_broadcast_in_dim %247, %250, dims = [0, 1, 2] : (tensor<1x1x128xf32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %252 = stablehlo.add %246, %251 : tensor<?x?x128xf32>
    %253 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %254 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %255 = stablehlo.concatenate %253, %254, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %256 = stablehlo.dynamic_broadcast_in_dim %cst_0, %255, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %257 = stablehlo.multiply %252, %256 : tensor<?x?x128xf32>
    %258 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %259 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %260 = stablehlo.concatenate %258, %259, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %261 = stablehlo.dynamic_broadcast_in_dim %cst, %260, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %262 = stablehlo.multiply %252, %261 : tensor<?x?x128xf32>
    %263 = stablehlo.composite "chlo.erf" %262 {decomposition = @chlo.erf.impl, version = 1 : i32} : (tensor<?x?x128xf32>) -> tensor<?x?x128xf32>
    %264 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %265 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %266 = stablehlo.concatenate %264, %265, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %267 = stablehlo.dynamic_broadcast_in_dim %cst_6, %266, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %268 = stablehlo.add %267, %263 : tensor<?x?x128xf32>
    %269 = stablehlo.multiply %257, %268 : tensor<?x?x128xf32>
    %270 = stablehlo.dot_general %269, %arg7, contracting_dims = [2] x [0] : (tensor<?x?x128xf32>, tensor<128x64xf32>) -> tensor<?x?x64xf32>
    %271 = stablehlo.broadcast_in_dim %arg6, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %272 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %273 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %274 = stablehlo.concatenate %272, %273, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %275 = stablehlo.dynamic_broadcast_in_dim %271, %274, dims = [0, 1, 2] : (tensor<1x1x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %276 = stablehlo.add %270, %275 : tensor<?x?x64xf32>
    %277 = stablehlo.add %245, %276 : tensor<?x?x64xf32>
    %278 = stablehlo.reduce(%277 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<?x?x64xf32>, tensor<f32>) -> tensor<?x?xf32>
    %279 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %280 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %281 = stablehlo.concatenate %279, %280, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %282 = stablehlo.dynamic_broadcast_in_dim %278, %281, dims = [0, 1] : (tensor<?x?xf32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %283 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %284 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %285 = stablehlo.concatenate %283, %284, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %286 = stablehlo.dynamic_broadcast_in_dim %cst_8, %285, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %287 = stablehlo.divide %282, %286 : tensor<?x?x1xf32>
    %288 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %289 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %290 = stablehlo.concatenate %288, %289, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %291 = stablehlo.dynamic_broadcast_in_dim %287, %290, dims = [0, 1, 2] : (tensor<?x?x1xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %292 = stablehlo.subtract %277, %291 : tensor<?x?x64xf32>
    %293 = stablehlo.multiply %292, %292 : tensor<?x?x64xf32>
    %294 = stablehlo.reduce(%293 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<?x?x64xf32>, tensor<f32>) -> tensor<?x?xf32>
    %295 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %296 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %297 = stablehlo.concatenate %295, %296, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %298 = stablehlo.dynamic_broadcast_in_dim %294, %297, dims = [0, 1] : (tensor<?x?xf32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %299 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %300 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %301 = stablehlo.concatenate %299, %300, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %302 = stablehlo.dynamic_broadcast_in_dim %cst_8, %301, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %303 = stablehlo.divide %298, %302 : tensor<?x?x1xf32>
    %304 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %305 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %306 = stablehlo.concatenate %304, %305, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %307 = stablehlo.dynamic_broadcast_in_dim %cst_7, %306, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %308 = stablehlo.add %303, %307 : tensor<?x?x1xf32>
    %309 = stablehlo.rsqrt %308 : tensor<?x?x1xf32>
    %310 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %311 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %312 = stablehlo.concatenate %310, %311, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %313 = stablehlo.dynamic_broadcast_in_dim %309, %312, dims = [0, 1, 2] : (tensor<?x?x1xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %314 = stablehlo.multiply %292, %313 : tensor<?x?x64xf32>
    %315 = stablehlo.broadcast_in_dim %arg11, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %316 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %317 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %318 = stablehlo.concatenate %316, %317, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %319 = stablehlo.dynamic_broadcast_in_dim %315, %318, dims = [0, 1, 2] : (tensor<1x1x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %320 = stablehlo.multiply %314, %319 : tensor<?x?x64xf32>
    %321 = stablehlo.broadcast_in_dim %arg10, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %322 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %323 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %324 = stablehlo.concatenate %322, %323, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %325 = stablehlo.dynamic_broadcast_in_dim %321, %324, dims = [0, 1, 2] : (tensor<1x1x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %326 = stablehlo.add %320, %325 : tensor<?x?x64xf32>
    %327 = stablehlo.dot_general %326, %arg31, contracting_dims = [2] x [0] : (tensor<?x?x64xf32>, tensor<64x64xf32>) -> tensor<?x?x64xf32>
    %328 = stablehlo.broadcast_in_dim %arg30, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %329 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %330 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %331 = stablehlo.concatenate %329, %330, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %332 = stablehlo.dynamic_broadcast_in_dim %328, %331, dims = [0, 1, 2] : (tensor<1x1x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %333 = stablehlo.add %327, %332 : tensor<?x?x64xf32>
    %334 = stablehlo.dot_general %326, %arg21, contracting_dims = [2] x [0] : (tensor<?x?x64xf32>, tensor<64x64xf32>) -> tensor<?x?x64xf32>
    %335 = stablehlo.broadcast_in_dim %arg20, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %336 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %337 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %338 = stablehlo.concatenate %336, %337, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %339 = stablehlo.dynamic_broadcast_in_dim %335, %338, dims = [0, 1, 2] : (tensor<1x1x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %340 = stablehlo.add %334, %339 : tensor<?x?x64xf32>
    %341 = stablehlo.dot_general %326, %arg33, contracting_dims = [2] x [0] : (tensor<?x?x64xf32>, tensor<64x64xf32>) -> tensor<?x?x64xf32>
    %342 = stablehlo.broadcast_in_dim %arg32, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %343 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %344 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %345 = stablehlo.concatenate %343, %344, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %346 = stablehlo.dynamic_broadcast_in_dim %342, %345, dims = [0, 1, 2] : (tensor<1x1x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %347 = stablehlo.add %341, %346 : tensor<?x?x64xf32>
    %348 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %349 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %350 = stablehlo.concatenate %348, %349, %c_4, %c_3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %351 = stablehlo.dynamic_reshape %333, %350 : (tensor<?x?x64xf32>, tensor<4xi32>) -> tensor<?x?x4x16xf32>
    %352 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %353 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %354 = stablehlo.concatenate %352, %353, %c_4, %c_3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %355 = stablehlo.dynamic_reshape %340, %354 : (tensor<?x?x64xf32>, tensor<4xi32>) -> tensor<?x?x4x16xf32>
    %356 = stablehlo.dot_general %351, %355, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<?x?x4x16xf32>, tensor<?x?x4x16xf32>) -> tensor<?x4x?x?xf32>
    %357 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %358 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %359 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %360 = stablehlo.concatenate %357, %c_4, %358, %359, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %361 = stablehlo.dynamic_broadcast_in_dim %cst_2, %360, dims = [] : (tensor<f32>, tensor<4xi32>) -> tensor<?x4x?x?xf32>
    %362 = stablehlo.multiply %356, %361 : tensor<?x4x?x?xf32>
    %363 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %364 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %365 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %366 = stablehlo.concatenate %363, %c_4, %364, %365, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %367 = stablehlo.dynamic_broadcast_in_dim %108, %366, dims = [0, 1, 2, 3] : (tensor<?x1x1x?xf32>, tensor<4xi32>) -> tensor<?x4x?x?xf32>
    %368 = stablehlo.add %362, %367 : tensor<?x4x?x?xf32>
    %369 = stablehlo.reduce(%368 init: %cst_1) applies stablehlo.maximum across dimensions = [3] : (tensor<?x4x?x?xf32>, tensor<f32>) -> tensor<?x4x?xf32>
    %370 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %371 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %372 = stablehlo.concatenate %370, %c_4, %371, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %373 = stablehlo.dynamic_broadcast_in_dim %cst_1, %372, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x4x?xf32>
    %374 = stablehlo.maximum %373, %369 : tensor<?x4x?xf32>
    %375 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %376 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %377 = stablehlo.concatenate %375, %c_4, %376, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %378 = stablehlo.dynamic_broadcast_in_dim %374, %377, dims = [0, 1, 2] : (tensor<?x4x?xf32>, tensor<4xi32>) -> tensor<?x4x?x1xf32>
    %379 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %380 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %381 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %382 = stablehlo.concatenate %379, %c_4, %380, %381, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %383 = stablehlo.dynamic_broadcast_in_dim %378, %382, dims = [0, 1, 2, 3] : (tensor<?x4x?x1xf32>, tensor<4xi32>) -> tensor<?x4x?x?xf32>
    %384 = stablehlo.subtract %368, %383 : tensor<?x4x?x?xf32>
    %385 = stablehlo.exponential %384 : tensor<?x4x?x?xf32>
    %386 = stablehlo.reduce(%385 init: %cst_9) applies stablehlo.add across dimensions = [3] : (tensor<?x4x?x?xf32>, tensor<f32>) -> tensor<?x4x?xf32>
    %387 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %388 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %389 = stablehlo.concatenate %387, %c_4, %388, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %390 = stablehlo.dynamic_broadcast_in_dim %386, %389, dims = [0, 1, 2] : (tensor<?x4x?xf32>, tensor<4xi32>) -> tensor<?x4x?x1xf32>
    %391 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %392 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %393 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %394 = stablehlo.concatenate %391, %c_4, %392, %393, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %395 = stablehlo.dynamic_broadcast_in_dim %390, %394, dims = [0, 1, 2, 3] : (tensor<?x4x?x1xf32>, tensor<4xi32>) -> tensor<?x4x?x?xf32>
    %396 = stablehlo.divide %385, %395 : tensor<?x4x?x?xf32>
    %397 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %398 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %399 = stablehlo.concatenate %397, %398, %c_4, %c_3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %400 = stablehlo.dynamic_reshape %347, %399 : (tensor<?x?x64xf32>, tensor<4xi32>) -> tensor<?x?x4x16xf32>
    %401 = stablehlo.dot_general %400, %396, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3] : (tensor<?x?x4x16xf32>, tensor<?x4x?x?xf32>) -> tensor<?x4x16x?xf32>
    %402 = stablehlo.transpose %401, dims = [0, 3, 1, 2] : (tensor<?x4x16x?xf32>) -> tensor<?x?x4x16xf32>
    %403 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %404 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %405 = stablehlo.concatenate %403, %404, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %406 = stablehlo.dynamic_reshape %402, %405 : (tensor<?x?x4x16xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %407 = stablehlo.dot_general %406, %arg29, contracting_dims = [2] x [0] : (tensor<?x?x64xf32>, tensor<64x64xf32>) -> tensor<?x?x64xf32>
    %408 = stablehlo.broadcast_in_dim %arg28, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %409 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %410 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %411 = stablehlo.concatenate %409, %410, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %412 = stablehlo.dynamic_broadcast_in_dim %408, %411, dims = [0, 1, 2] : (tensor<1x1x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %413 = stablehlo.add %407, %412 : tensor<?x?x64xf32>
    %414 = stablehlo.add %326, %413 : tensor<?x?x64xf32>
    %415 = stablehlo.reduce(%414 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<?x?x64xf32>, tensor<f32>) -> tensor<?x?xf32>
    %416 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %417 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %418 = stablehlo.concatenate %416, %417, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %419 = stablehlo.dynamic_broadcast_in_dim %415, %418, dims = [0, 1] : (tensor<?x?xf32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %420 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %421 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %422 = stablehlo.concatenate %420, %421, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %423 = stablehlo.dynamic_broadcast_in_dim %cst_8, %422, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %424 = stablehlo.divide %419, %423 : tensor<?x?x1xf32>
    %425 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %426 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %427 = stablehlo.concatenate %425, %426, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %428 = stablehlo.dynamic_broadcast_in_dim %424, %427, dims = [0, 1, 2] : (tensor<?x?x1xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %429 = stablehlo.subtract %414, %428 : tensor<?x?x64xf32>
    %430 = stablehlo.multiply %429, %429 : tensor<?x?x64xf32>
    %431 = stablehlo.reduce(%430 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<?x?x64xf32>, tensor<f32>) -> tensor<?x?xf32>
    %432 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %433 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %434 = stablehlo.concatenate %432, %433, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %435 = stablehlo.dynamic_broadcast_in_dim %431, %434, dims = [0, 1] : (tensor<?x?xf32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %436 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %437 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %438 = stablehlo.concatenate %436, %437, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %439 = stablehlo.dynamic_broadcast_in_dim %cst_8, %438, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %440 = stablehlo.divide %435, %439 : tensor<?x?x1xf32>
    %441 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %442 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %443 = stablehlo.concatenate %441, %442, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %444 = stablehlo.dynamic_broadcast_in_dim %cst_7, %443, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %445 = stablehlo.add %440, %444 : tensor<?x?x1xf32>
    %446 = stablehlo.rsqrt %445 : tensor<?x?x1xf32>
    %447 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %448 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %449 = stablehlo.concatenate %447, %448, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %450 = stablehlo.dynamic_broadcast_in_dim %446, %449, dims = [0, 1, 2] : (tensor<?x?x1xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %451 = stablehlo.multiply %429, %450 : tensor<?x?x64xf32>
    %452 = stablehlo.broadcast_in_dim %arg19, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %453 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %454 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %455 = stablehlo.concatenate %453, %454, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %456 = stablehlo.dynamic_broadcast_in_dim %452, %455, dims = [0, 1, 2] : (tensor<1x1x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %457 = stablehlo.multiply %451, %456 : tensor<?x?x64xf32>
    %458 = stablehlo.broadcast_in_dim %arg18, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %459 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %460 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %461 = stablehlo.concatenate %459, %460, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %462 = stablehlo.dynamic_broadcast_in_dim %458, %461, dims = [0, 1, 2] : (tensor<1x1x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %463 = stablehlo.add %457, %462 : tensor<?x?x64xf32>
    %464 = stablehlo.dot_general %463, %arg25, contracting_dims = [2] x [0] : (tensor<?x?x64xf32>, tensor<64x128xf32>) -> tensor<?x?x128xf32>
    %465 = stablehlo.broadcast_in_dim %arg24, dims = [2] : (tensor<128xf32>) -> tensor<1x1x128xf32>
    %466 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %467 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %468 = stablehlo.concatenate %466, %467, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %469 = stablehlo.dynamic_broadcast_in_dim %465, %468, dims = [0, 1, 2] : (tensor<1x1x128xf32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %470 = stablehlo.add %464, %469 : tensor<?x?x128xf32>
    %471 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %472 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %473 = stablehlo.concatenate %471, %472, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %474 = stablehlo.dynamic_broadcast_in_dim %cst_0, %473, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %475 = stablehlo.multiply %470, %474 : tensor<?x?x128xf32>
    %476 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %477 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %478 = stablehlo.concatenate %476, %477, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %479 = stablehlo.dynamic_broadcast_in_dim %cst, %478, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %480 = stablehlo.multiply %470, %479 : tensor<?x?x128xf32>
    %481 = stablehlo.composite "chlo.erf" %480 {decomposition = @chlo.erf.impl_0, version = 1 : i32} : (tensor<?x?x128xf32>) -> tensor<?x?x128xf32>
    %482 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %483 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %484 = stablehlo.concatenate %482, %483, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %485 = stablehlo.dynamic_broadcast_in_dim %cst_6, %484, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %486 = stablehlo.add %485, %481 : tensor<?x?x128xf32>
    %487 = stablehlo.multiply %475, %486 : tensor<?x?x128xf32>
    %488 = stablehlo.dot_general %487, %arg23, contracting_dims = [2] x [0] : (tensor<?x?x128xf32>, tensor<128x64xf32>) -> tensor<?x?x64xf32>
    %489 = stablehlo.broadcast_in_dim %arg22, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %490 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %491 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %492 = stablehlo.concatenate %490, %491, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %493 = stablehlo.dynamic_broadcast_in_dim %489, %492, dims = [0, 1, 2] : (tensor<1x1x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %494 = stablehlo.add %488, %493 : tensor<?x?x64xf32>
    %495 = stablehlo.add %463, %494 : tensor<?x?x64xf32>
    %496 = stablehlo.reduce(%495 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<?x?x64xf32>, tensor<f32>) -> tensor<?x?xf32>
    %497 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %498 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %499 = stablehlo.concatenate %497, %498, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %500 = stablehlo.dynamic_broadcast_in_dim %496, %499, dims = [0, 1] : (tensor<?x?xf32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %501 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %502 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %503 = stablehlo.concatenate %501, %502, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %504 = stablehlo.dynamic_broadcast_in_dim %cst_8, %503, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %505 = stablehlo.divide %500, %504 : tensor<?x?x1xf32>
    %506 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %507 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %508 = stablehlo.concatenate %506, %507, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %509 = stablehlo.dynamic_broadcast_in_dim %505, %508, dims = [0, 1, 2] : (tensor<?x?x1xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %510 = stablehlo.subtract %495, %509 : tensor<?x?x64xf32>
    %511 = stablehlo.multiply %510, %510 : tensor<?x?x64xf32>
    %512 = stablehlo.reduce(%511 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<?x?x64xf32>, tensor<f32>) -> tensor<?x?xf32>
    %513 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %514 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %515 = stablehlo.concatenate %513, %514, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %516 = stablehlo.dynamic_broadcast_in_dim %512, %515, dims = [0, 1] : (tensor<?x?xf32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %517 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %518 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %519 = stablehlo.concatenate %517, %518, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %520 = stablehlo.dynamic_broadcast_in_dim %cst_8, %519, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %521 = stablehlo.divide %516, %520 : tensor<?x?x1xf32>
    %522 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %523 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %524 = stablehlo.concatenate %522, %523, %c_12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %525 = stablehlo.dynamic_broadcast_in_dim %cst_7, %524, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x1xf32>
    %526 = stablehlo.add %521, %525 : tensor<?x?x1xf32>
    %527 = stablehlo.rsqrt %526 : tensor<?x?x1xf32>
    %528 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %529 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %530 = stablehlo.concatenate %528, %529, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %531 = stablehlo.dynamic_broadcast_in_dim %527, %530, dims = [0, 1, 2] : (tensor<?x?x1xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %532 = stablehlo.multiply %510, %531 : tensor<?x?x64xf32>
    %533 = stablehlo.broadcast_in_dim %arg27, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %534 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %535 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %536 = stablehlo.concatenate %534, %535, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %537 = stablehlo.dynamic_broadcast_in_dim %533, %536, dims = [0, 1, 2] : (tensor<1x1x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %538 = stablehlo.multiply %532, %537 : tensor<?x?x64xf32>
    %539 = stablehlo.broadcast_in_dim %arg26, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %540 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %541 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %542 = stablehlo.concatenate %540, %541, %c_11, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %543 = stablehlo.dynamic_broadcast_in_dim %539, %542, dims = [0, 1, 2] : (tensor<1x1x64xf32>, tensor<3xi32>) -> tensor<?x?x64xf32>
    %544 = stablehlo.add %538, %543 : tensor<?x?x64xf32>
    return %544 : tensor<?x?x64xf32>
  }
  func.func private @chlo.erf.impl_0(%arg0: tensor<?x?x128xf32>) -> tensor<?x?x128xf32> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<-1.000000e+00> : tensor<f32>
    %cst_1 = stablehlo.constant dense<-0.0142647391> : tensor<f32>
    %cst_2 = stablehlo.constant dense<-0.00737332925> : tensor<f32>
    %cst_3 = stablehlo.constant dense<-0.00168282702> : tensor<f32>
    %cst_4 = stablehlo.constant dense<-2.13374049E-4> : tensor<f32>
    %cst_5 = stablehlo.constant dense<-1.45660715E-5> : tensor<f32>
    %cst_6 = stablehlo.constant dense<-0.0160960332> : tensor<f32>
    %cst_7 = stablehlo.constant dense<-2.954600e-03> : tensor<f32>
    %cst_8 = stablehlo.constant dense<-7.34990637E-4> : tensor<f32>
    %cst_9 = stablehlo.constant dense<-5.69250624E-5> : tensor<f32>
    %cst_10 = stablehlo.constant dense<-2.10102394E-6> : tensor<f32>
    %cst_11 = stablehlo.constant dense<2.77068146E-8> : tensor<f32>
    %cst_12 = stablehlo.constant dense<-2.72614237E-10> : tensor<f32>
    %cst_13 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %cst_14 = stablehlo.constant dense<-4.000000e+00> : tensor<f32>
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.get_dimension_size %arg0, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %5 = stablehlo.reshape %4 : (tensor<i32>) -> tensor<1xi32>
    %6 = stablehlo.concatenate %1, %3, %5, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %7 = stablehlo.dynamic_broadcast_in_dim %cst_14, %6, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %8 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %9 = stablehlo.reshape %8 : (tensor<i32>) -> tensor<1xi32>
    %10 = stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %11 = stablehlo.reshape %10 : (tensor<i32>) -> tensor<1xi32>
    %12 = stablehlo.get_dimension_size %arg0, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %13 = stablehlo.reshape %12 : (tensor<i32>) -> tensor<1xi32>
    %14 = stablehlo.concatenate %9, %11, %13, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %15 = stablehlo.dynamic_broadcast_in_dim %cst_13, %14, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %16 = stablehlo.clamp %7, %arg0, %15 : tensor<?x?x128xf32>
    %17 = stablehlo.multiply %16, %16 : tensor<?x?x128xf32>
    %18 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %19 = stablehlo.reshape %18 : (tensor<i32>) -> tensor<1xi32>
    %20 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %21 = stablehlo.reshape %20 : (tensor<i32>) -> tensor<1xi32>
    %22 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %23 = stablehlo.reshape %22 : (tensor<i32>) -> tensor<1xi32>
    %24 = stablehlo.concatenate %19, %21, %23, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %25 = stablehlo.dynamic_broadcast_in_dim %cst_12, %24, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %26 = stablehlo.multiply %25, %17 : tensor<?x?x128xf32>
    %27 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %28 = stablehlo.reshape %27 : (tensor<i32>) -> tensor<1xi32>
    %29 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %30 = stablehlo.reshape %29 : (tensor<i32>) -> tensor<1xi32>
    %31 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %32 = stablehlo.reshape %31 : (tensor<i32>) -> tensor<1xi32>
    %33 = stablehlo.concatenate %28, %30, %32, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %34 = stablehlo.dynamic_broadcast_in_dim %cst_11, %33, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %35 = stablehlo.add %26, %34 : tensor<?x?x128xf32>
    %36 = stablehlo.multiply %35, %17 : tensor<?x?x128xf32>
    %37 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %38 = stablehlo.reshape %37 : (tensor<i32>) -> tensor<1xi32>
    %39 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %40 = stablehlo.reshape %39 : (tensor<i32>) -> tensor<1xi32>
    %41 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %42 = stablehlo.reshape %41 : (tensor<i32>) -> tensor<1xi32>
    %43 = stablehlo.concatenate %38, %40, %42, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %44 = stablehlo.dynamic_broadcast_in_dim %cst_10, %43, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %45 = stablehlo.add %36, %44 : tensor<?x?x128xf32>
    %46 = stablehlo.multiply %45, %17 : tensor<?x?x128xf32>
    %47 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %48 = stablehlo.reshape %47 : (tensor<i32>) -> tensor<1xi32>
    %49 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %50 = stablehlo.reshape %49 : (tensor<i32>) -> tensor<1xi32>
    %51 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %52 = stablehlo.reshape %51 : (tensor<i32>) -> tensor<1xi32>
    %53 = stablehlo.concatenate %48, %50, %52, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %54 = stablehlo.dynamic_broadcast_in_dim %cst_9, %53, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %55 = stablehlo.add %46, %54 : tensor<?x?x128xf32>
    %56 = stablehlo.multiply %55, %17 : tensor<?x?x128xf32>
    %57 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %58 = stablehlo.reshape %57 : (tensor<i32>) -> tensor<1xi32>
    %59 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %60 = stablehlo.reshape %59 : (tensor<i32>) -> tensor<1xi32>
    %61 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %62 = stablehlo.reshape %61 : (tensor<i32>) -> tensor<1xi32>
    %63 = stablehlo.concatenate %58, %60, %62, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %64 = stablehlo.dynamic_broadcast_in_dim %cst_8, %63, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %65 = stablehlo.add %56, %64 : tensor<?x?x128xf32>
    %66 = stablehlo.multiply %65, %17 : tensor<?x?x128xf32>
    %67 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %68 = stablehlo.reshape %67 : (tensor<i32>) -> tensor<1xi32>
    %69 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %70 = stablehlo.reshape %69 : (tensor<i32>) -> tensor<1xi32>
    %71 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %72 = stablehlo.reshape %71 : (tensor<i32>) -> tensor<1xi32>
    %73 = stablehlo.concatenate %68, %70, %72, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %74 = stablehlo.dynamic_broadcast_in_dim %cst_7, %73, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %75 = stablehlo.add %66, %74 : tensor<?x?x128xf32>
    %76 = stablehlo.multiply %75, %17 : tensor<?x?x128xf32>
    %77 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %78 = stablehlo.reshape %77 : (tensor<i32>) -> tensor<1xi32>
    %79 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %80 = stablehlo.reshape %79 : (tensor<i32>) -> tensor<1xi32>
    %81 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %82 = stablehlo.reshape %81 : (tensor<i32>) -> tensor<1xi32>
    %83 = stablehlo.concatenate %78, %80, %82, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %84 = stablehlo.dynamic_broadcast_in_dim %cst_6, %83, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %85 = stablehlo.add %76, %84 : tensor<?x?x128xf32>
    %86 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %87 = stablehlo.reshape %86 : (tensor<i32>) -> tensor<1xi32>
    %88 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %89 = stablehlo.reshape %88 : (tensor<i32>) -> tensor<1xi32>
    %90 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %91 = stablehlo.reshape %90 : (tensor<i32>) -> tensor<1xi32>
    %92 = stablehlo.concatenate %87, %89, %91, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %93 = stablehlo.dynamic_broadcast_in_dim %cst_5, %92, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %94 = stablehlo.multiply %93, %17 : tensor<?x?x128xf32>
    %95 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %96 = stablehlo.reshape %95 : (tensor<i32>) -> tensor<1xi32>
    %97 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %98 = stablehlo.reshape %97 : (tensor<i32>) -> tensor<1xi32>
    %99 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %100 = stablehlo.reshape %99 : (tensor<i32>) -> tensor<1xi32>
    %101 = stablehlo.concatenate %96, %98, %100, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %102 = stablehlo.dynamic_broadcast_in_dim %cst_4, %101, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %103 = stablehlo.add %94, %102 : tensor<?x?x128xf32>
    %104 = stablehlo.multiply %103, %17 : tensor<?x?x128xf32>
    %105 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %106 = stablehlo.reshape %105 : (tensor<i32>) -> tensor<1xi32>
    %107 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %108 = stablehlo.reshape %107 : (tensor<i32>) -> tensor<1xi32>
    %109 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %110 = stablehlo.reshape %109 : (tensor<i32>) -> tensor<1xi32>
    %111 = stablehlo.concatenate %106, %108, %110, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %112 = stablehlo.dynamic_broadcast_in_dim %cst_3, %111, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %113 = stablehlo.add %104, %112 : tensor<?x?x128xf32>
    %114 = stablehlo.multiply %113, %17 : tensor<?x?x128xf32>
    %115 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %116 = stablehlo.reshape %115 : (tensor<i32>) -> tensor<1xi32>
    %117 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %118 = stablehlo.reshape %117 : (tensor<i32>) -> tensor<1xi32>
    %119 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %120 = stablehlo.reshape %119 : (tensor<i32>) -> tensor<1xi32>
    %121 = stablehlo.concatenate %116, %118, %120, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %122 = stablehlo.dynamic_broadcast_in_dim %cst_2, %121, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %123 = stablehlo.add %114, %122 : tensor<?x?x128xf32>
    %124 = stablehlo.multiply %123, %17 : tensor<?x?x128xf32>
    %125 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %126 = stablehlo.reshape %125 : (tensor<i32>) -> tensor<1xi32>
    %127 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %128 = stablehlo.reshape %127 : (tensor<i32>) -> tensor<1xi32>
    %129 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %130 = stablehlo.reshape %129 : (tensor<i32>) -> tensor<1xi32>
    %131 = stablehlo.concatenate %126, %128, %130, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %132 = stablehlo.dynamic_broadcast_in_dim %cst_1, %131, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %133 = stablehlo.add %124, %132 : tensor<?x?x128xf32>
    %134 = stablehlo.multiply %16, %85 : tensor<?x?x128xf32>
    %135 = stablehlo.divide %134, %133 : tensor<?x?x128xf32>
    %136 = stablehlo.get_dimension_size %16, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %137 = stablehlo.reshape %136 : (tensor<i32>) -> tensor<1xi32>
    %138 = stablehlo.get_dimension_size %16, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %139 = stablehlo.reshape %138 : (tensor<i32>) -> tensor<1xi32>
    %140 = stablehlo.get_dimension_size %16, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %141 = stablehlo.reshape %140 : (tensor<i32>) -> tensor<1xi32>
    %142 = stablehlo.concatenate %137, %139, %141, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %143 = stablehlo.dynamic_broadcast_in_dim %cst_0, %142, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %144 = stablehlo.get_dimension_size %16, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %145 = stablehlo.reshape %144 : (tensor<i32>) -> tensor<1xi32>
    %146 = stablehlo.get_dimension_size %16, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %147 = stablehlo.reshape %146 : (tensor<i32>) -> tensor<1xi32>
    %148 = stablehlo.get_dimension_size %16, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %149 = stablehlo.reshape %148 : (tensor<i32>) -> tensor<1xi32>
    %150 = stablehlo.concatenate %145, %147, %149, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %151 = stablehlo.dynamic_broadcast_in_dim %cst, %150, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %152 = stablehlo.clamp %143, %135, %151 : tensor<?x?x128xf32>
    return %152 : tensor<?x?x128xf32>
  }
  func.func private @chlo.erf.impl(%arg0: tensor<?x?x128xf32>) -> tensor<?x?x128xf32> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<-1.000000e+00> : tensor<f32>
    %cst_1 = stablehlo.constant dense<-0.0142647391> : tensor<f32>
    %cst_2 = stablehlo.constant dense<-0.00737332925> : tensor<f32>
    %cst_3 = stablehlo.constant dense<-0.00168282702> : tensor<f32>
    %cst_4 = stablehlo.constant dense<-2.13374049E-4> : tensor<f32>
    %cst_5 = stablehlo.constant dense<-1.45660715E-5> : tensor<f32>
    %cst_6 = stablehlo.constant dense<-0.0160960332> : tensor<f32>
    %cst_7 = stablehlo.constant dense<-2.954600e-03> : tensor<f32>
    %cst_8 = stablehlo.constant dense<-7.34990637E-4> : tensor<f32>
    %cst_9 = stablehlo.constant dense<-5.69250624E-5> : tensor<f32>
    %cst_10 = stablehlo.constant dense<-2.10102394E-6> : tensor<f32>
    %cst_11 = stablehlo.constant dense<2.77068146E-8> : tensor<f32>
    %cst_12 = stablehlo.constant dense<-2.72614237E-10> : tensor<f32>
    %cst_13 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %cst_14 = stablehlo.constant dense<-4.000000e+00> : tensor<f32>
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.get_dimension_size %arg0, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %5 = stablehlo.reshape %4 : (tensor<i32>) -> tensor<1xi32>
    %6 = stablehlo.concatenate %1, %3, %5, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %7 = stablehlo.dynamic_broadcast_in_dim %cst_14, %6, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %8 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %9 = stablehlo.reshape %8 : (tensor<i32>) -> tensor<1xi32>
    %10 = stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %11 = stablehlo.reshape %10 : (tensor<i32>) -> tensor<1xi32>
    %12 = stablehlo.get_dimension_size %arg0, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %13 = stablehlo.reshape %12 : (tensor<i32>) -> tensor<1xi32>
    %14 = stablehlo.concatenate %9, %11, %13, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %15 = stablehlo.dynamic_broadcast_in_dim %cst_13, %14, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %16 = stablehlo.clamp %7, %arg0, %15 : tensor<?x?x128xf32>
    %17 = stablehlo.multiply %16, %16 : tensor<?x?x128xf32>
    %18 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %19 = stablehlo.reshape %18 : (tensor<i32>) -> tensor<1xi32>
    %20 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %21 = stablehlo.reshape %20 : (tensor<i32>) -> tensor<1xi32>
    %22 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %23 = stablehlo.reshape %22 : (tensor<i32>) -> tensor<1xi32>
    %24 = stablehlo.concatenate %19, %21, %23, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %25 = stablehlo.dynamic_broadcast_in_dim %cst_12, %24, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %26 = stablehlo.multiply %25, %17 : tensor<?x?x128xf32>
    %27 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %28 = stablehlo.reshape %27 : (tensor<i32>) -> tensor<1xi32>
    %29 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %30 = stablehlo.reshape %29 : (tensor<i32>) -> tensor<1xi32>
    %31 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %32 = stablehlo.reshape %31 : (tensor<i32>) -> tensor<1xi32>
    %33 = stablehlo.concatenate %28, %30, %32, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %34 = stablehlo.dynamic_broadcast_in_dim %cst_11, %33, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %35 = stablehlo.add %26, %34 : tensor<?x?x128xf32>
    %36 = stablehlo.multiply %35, %17 : tensor<?x?x128xf32>
    %37 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %38 = stablehlo.reshape %37 : (tensor<i32>) -> tensor<1xi32>
    %39 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %40 = stablehlo.reshape %39 : (tensor<i32>) -> tensor<1xi32>
    %41 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %42 = stablehlo.reshape %41 : (tensor<i32>) -> tensor<1xi32>
    %43 = stablehlo.concatenate %38, %40, %42, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %44 = stablehlo.dynamic_broadcast_in_dim %cst_10, %43, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %45 = stablehlo.add %36, %44 : tensor<?x?x128xf32>
    %46 = stablehlo.multiply %45, %17 : tensor<?x?x128xf32>
    %47 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %48 = stablehlo.reshape %47 : (tensor<i32>) -> tensor<1xi32>
    %49 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %50 = stablehlo.reshape %49 : (tensor<i32>) -> tensor<1xi32>
    %51 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %52 = stablehlo.reshape %51 : (tensor<i32>) -> tensor<1xi32>
    %53 = stablehlo.concatenate %48, %50, %52, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %54 = stablehlo.dynamic_broadcast_in_dim %cst_9, %53, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %55 = stablehlo.add %46, %54 : tensor<?x?x128xf32>
    %56 = stablehlo.multiply %55, %17 : tensor<?x?x128xf32>
    %57 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %58 = stablehlo.reshape %57 : (tensor<i32>) -> tensor<1xi32>
    %59 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %60 = stablehlo.reshape %59 : (tensor<i32>) -> tensor<1xi32>
    %61 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %62 = stablehlo.reshape %61 : (tensor<i32>) -> tensor<1xi32>
    %63 = stablehlo.concatenate %58, %60, %62, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %64 = stablehlo.dynamic_broadcast_in_dim %cst_8, %63, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %65 = stablehlo.add %56, %64 : tensor<?x?x128xf32>
    %66 = stablehlo.multiply %65, %17 : tensor<?x?x128xf32>
    %67 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %68 = stablehlo.reshape %67 : (tensor<i32>) -> tensor<1xi32>
    %69 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %70 = stablehlo.reshape %69 : (tensor<i32>) -> tensor<1xi32>
    %71 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %72 = stablehlo.reshape %71 : (tensor<i32>) -> tensor<1xi32>
    %73 = stablehlo.concatenate %68, %70, %72, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %74 = stablehlo.dynamic_broadcast_in_dim %cst_7, %73, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %75 = stablehlo.add %66, %74 : tensor<?x?x128xf32>
    %76 = stablehlo.multiply %75, %17 : tensor<?x?x128xf32>
    %77 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %78 = stablehlo.reshape %77 : (tensor<i32>) -> tensor<1xi32>
    %79 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %80 = stablehlo.reshape %79 : (tensor<i32>) -> tensor<1xi32>
    %81 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %82 = stablehlo.reshape %81 : (tensor<i32>) -> tensor<1xi32>
    %83 = stablehlo.concatenate %78, %80, %82, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %84 = stablehlo.dynamic_broadcast_in_dim %cst_6, %83, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %85 = stablehlo.add %76, %84 : tensor<?x?x128xf32>
    %86 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %87 = stablehlo.reshape %86 : (tensor<i32>) -> tensor<1xi32>
    %88 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %89 = stablehlo.reshape %88 : (tensor<i32>) -> tensor<1xi32>
    %90 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %91 = stablehlo.reshape %90 : (tensor<i32>) -> tensor<1xi32>
    %92 = stablehlo.concatenate %87, %89, %91, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %93 = stablehlo.dynamic_broadcast_in_dim %cst_5, %92, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %94 = stablehlo.multiply %93, %17 : tensor<?x?x128xf32>
    %95 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %96 = stablehlo.reshape %95 : (tensor<i32>) -> tensor<1xi32>
    %97 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %98 = stablehlo.reshape %97 : (tensor<i32>) -> tensor<1xi32>
    %99 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %100 = stablehlo.reshape %99 : (tensor<i32>) -> tensor<1xi32>
    %101 = stablehlo.concatenate %96, %98, %100, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %102 = stablehlo.dynamic_broadcast_in_dim %cst_4, %101, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %103 = stablehlo.add %94, %102 : tensor<?x?x128xf32>
    %104 = stablehlo.multiply %103, %17 : tensor<?x?x128xf32>
    %105 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %106 = stablehlo.reshape %105 : (tensor<i32>) -> tensor<1xi32>
    %107 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %108 = stablehlo.reshape %107 : (tensor<i32>) -> tensor<1xi32>
    %109 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %110 = stablehlo.reshape %109 : (tensor<i32>) -> tensor<1xi32>
    %111 = stablehlo.concatenate %106, %108, %110, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %112 = stablehlo.dynamic_broadcast_in_dim %cst_3, %111, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %113 = stablehlo.add %104, %112 : tensor<?x?x128xf32>
    %114 = stablehlo.multiply %113, %17 : tensor<?x?x128xf32>
    %115 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %116 = stablehlo.reshape %115 : (tensor<i32>) -> tensor<1xi32>
    %117 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %118 = stablehlo.reshape %117 : (tensor<i32>) -> tensor<1xi32>
    %119 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %120 = stablehlo.reshape %119 : (tensor<i32>) -> tensor<1xi32>
    %121 = stablehlo.concatenate %116, %118, %120, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %122 = stablehlo.dynamic_broadcast_in_dim %cst_2, %121, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %123 = stablehlo.add %114, %122 : tensor<?x?x128xf32>
    %124 = stablehlo.multiply %123, %17 : tensor<?x?x128xf32>
    %125 = stablehlo.get_dimension_size %17, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %126 = stablehlo.reshape %125 : (tensor<i32>) -> tensor<1xi32>
    %127 = stablehlo.get_dimension_size %17, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %128 = stablehlo.reshape %127 : (tensor<i32>) -> tensor<1xi32>
    %129 = stablehlo.get_dimension_size %17, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %130 = stablehlo.reshape %129 : (tensor<i32>) -> tensor<1xi32>
    %131 = stablehlo.concatenate %126, %128, %130, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %132 = stablehlo.dynamic_broadcast_in_dim %cst_1, %131, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %133 = stablehlo.add %124, %132 : tensor<?x?x128xf32>
    %134 = stablehlo.multiply %16, %85 : tensor<?x?x128xf32>
    %135 = stablehlo.divide %134, %133 : tensor<?x?x128xf32>
    %136 = stablehlo.get_dimension_size %16, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %137 = stablehlo.reshape %136 : (tensor<i32>) -> tensor<1xi32>
    %138 = stablehlo.get_dimension_size %16, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %139 = stablehlo.reshape %138 : (tensor<i32>) -> tensor<1xi32>
    %140 = stablehlo.get_dimension_size %16, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %141 = stablehlo.reshape %140 : (tensor<i32>) -> tensor<1xi32>
    %142 = stablehlo.concatenate %137, %139, %141, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %143 = stablehlo.dynamic_broadcast_in_dim %cst_0, %142, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %144 = stablehlo.get_dimension_size %16, dim = 0 : (tensor<?x?x128xf32>) -> tensor<i32>
    %145 = stablehlo.reshape %144 : (tensor<i32>) -> tensor<1xi32>
    %146 = stablehlo.get_dimension_size %16, dim = 1 : (tensor<?x?x128xf32>) -> tensor<i32>
    %147 = stablehlo.reshape %146 : (tensor<i32>) -> tensor<1xi32>
    %148 = stablehlo.get_dimension_size %16, dim = 2 : (tensor<?x?x128xf32>) -> tensor<i32>
    %149 = stablehlo.reshape %148 : (tensor<i32>) -> tensor<1xi32>
    %150 = stablehlo.concatenate %145, %147, %149, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %151 = stablehlo.dynamic_broadcast_in_dim %cst, %150, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x128xf32>
    %152 = stablehlo.clamp %143, %135, %151 : tensor<?x?x128xf32>
    return %152 : tensor<?x?x128xf32>
  }
}
