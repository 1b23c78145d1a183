from rankwise import data as data
from rankwise import displays as displays
from rankwise import distributed as distributed
from rankwise import exceptions as exceptions
from rankwise import metrics as metrics
from rankwise import model_selection as model_selection
from rankwise import preprocessing as preprocessing
from rankwise.automatic.average import AverageRanker as AverageRanker
from rankwise.automatic.ranker import AutoRanker as AutoRanker
from rankwise.estimators.additive import AdditiveRanker as AdditiveRanker
from rankwise.estimators.additive_cv import AdditiveRankerCV as AdditiveRankerCV
from rankwise.estimators.kernel_rls import KernelRankRLS as KernelRankRLS
from rankwise.estimators.kernel_rls_cv import KernelRankRLSCV as KernelRankRLSCV
from rankwise.estimators.kernel_svm import KernelRankSVM as KernelRankSVM
from rankwise.estimators.rank_rls import RankRLS as RankRLS
from rankwise.estimators.rank_rls_cv import RankRLSCV as RankRLSCV
from rankwise.estimators.rank_svm import RankSVM as RankSVM
from rankwise.estimators.rank_svm_cv import RankSVMCV as RankSVMCV
from rankwise.explanations import explain as explain
from rankwise.explanations import explain_pair as explain_pair
from rankwise.explanations import feature_importance as feature_importance
from rankwise.exporters import export as export
from rankwise.leaderboards.estimator import BradleyTerry as BradleyTerry
from rankwise.leaderboards.next_pair import suggest as suggest
from rankwise.persistence import load as load
from rankwise.persistence import save as save

__version__: str
